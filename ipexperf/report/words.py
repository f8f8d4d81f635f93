"""Names of groups and configurations in summaries, for people who do not know the ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipexperf.bench.api import INFERENCE, TRAINING
from ipexperf.case import NetworkCase
from ipexperf.dtypes import PLAIN
from ipexperf.plan import groups
from ipexperf.plan.groups import STOCK, Group


def labels(cases: Sequence[Group[NetworkCase]]) -> dict[str, str]:
    """The model and kind of step of each group, by group name, and what else distinguishes it from other groups."""
    alike: dict[str, list[tuple[str, ...]]] = {}
    for group in cases:
        alike.setdefault(_head(group.cases[0]), []).append(_details(group.cases[0]))
    differ = {head: [len(set(texts)) > 1 for texts in zip(*details, strict=True)] for head, details in alike.items()}
    texts = {}
    for group in cases:
        head = _head(group.cases[0])
        parts = (text for text, differs in zip(_details(group.cases[0]), differ[head], strict=True) if differs)
        texts[group.name] = ", ".join([head, *parts])
    return texts


def _head(case: NetworkCase) -> str:
    mode = groups.mode(case)
    return f"{case.model}, {mode.kind or mode.family or (TRAINING if mode.trains else INFERENCE)}"


def _details(case: NetworkCase) -> tuple[str, ...]:
    return f"on {case.device}", f"batch {case.batch}", f"size {case.size}", case.data or "no data"


@dataclass(frozen=True, slots=True)
class Words:
    """Names the cases of a group. What they have in common is left out."""

    shared: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, cases: Iterable[NetworkCase]) -> Words:
        """The words for these cases."""
        return cls(frozenset.intersection(*(frozenset(case.knobs) for case in cases)))

    def whole(self, case: NetworkCase) -> str:
        """The configuration in full: 'bf16 on ipex, traced (infer_jit)'."""
        label = groups.mode(case).label
        mode = f"{label} ({case.mode})" if label else self._mode(case)
        return ", ".join(filter(None, (f"{case.dtype} on {case.stack}", mode, self._turned(case))))

    def subject(self, case: NetworkCase) -> str:
        """The same as the subject of a sentence."""
        text = self.whole(case)
        return f"{text}," if ", " in text else text

    def base(self, case: NetworkCase) -> str:
        """The name of the reference: 'stock fp32' if it is the plainest case possible."""
        plain = (case.stack, case.dtype, case.mode) == (STOCK, PLAIN, groups.family(case))
        return f"{STOCK} {PLAIN}" if plain and not self._turned(case) else self.whole(case)

    def short(self, case: NetworkCase, axis: str) -> str:
        """The configuration without its stack or its dtype, if the context says that already: 'bf16 traced'."""
        other = case.dtype if axis == "stack" else case.stack
        mode = groups.mode(case).label or self._mode(case)
        return " ".join(filter(None, (other, mode, self._turned(case))))

    @staticmethod
    def _mode(case: NetworkCase) -> str:
        return "" if case.mode == groups.family(case) else case.mode

    def _turned(self, case: NetworkCase) -> str:
        turned = [f"{name}={value}" for name, value in case.knobs if (name, value) not in self.shared]
        return f"with {' and '.join(turned)}" if turned else ""
