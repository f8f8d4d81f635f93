"""The numbers that programs tell of themselves, in the files of other tools or in their own."""
