"""The torch side: runs inside the worker, under any interpreter that has torch.

Modules here may be *imported* without torch (the plan reads what they declare); they may only *run* with it.
"""
