"""MovieLens-100K in its original file format, from a folder of the user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ipexperf.ext import Dataset, Split, WorkerError, register, torch
from ipexperf.zoo.datasets import _folder, ratings

FOLDER = "ml-100k"
FILES = {"u.data": "\t", "u.user": "|", "u.item": "|"}
"""Files of ratings, people and films, with what separates their fields."""
REMEDY = "unpack ml-100k.zip"
LIKED = 4
"""Ratings from this on, of 5, count as a yes."""
UNKNOWN = "1990"
"""The year of release of a film without one: the middle of all."""

Rows = list[list[str]]


class MovieLens(Dataset):
    name = "movielens"
    licence = "for research, not to be passed on (GroupLens)"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return _folder.find(folder, "MovieLens-100K", FOLDER, FILES, REMEDY)

    def files(self, path: str) -> list[Path]:
        return [Path(path) / name for name in FILES]

    def read(self, path: str, size: int) -> Split:
        """Hold out every fifth rating. The time of a rating is no input: it would identify the person."""
        try:
            return _split(*(_rows(Path(path) / name, mark) for name, mark in FILES.items()))
        except (ValueError, LookupError) as error:
            raise WorkerError("error", f"{path} is not MovieLens-100K, {error}: {REMEDY} there again") from None


def _rows(file: Path, separator: str) -> Rows:
    return [line.split(separator) for line in file.read_text(encoding="latin-1").splitlines()]


def _split(opinions: Rows, users: Rows, items: Rows) -> Split:
    people, films = ({number: row for number, *row in rows} for rows in (users, items))
    pairs = [(people[person], films[film]) for person, film, *_ in opinions]
    numbers = [_numbers(row[column] for row in opinions) for column in (0, 1)]
    numbers += [_numbers(person[column] for person, _ in pairs) for column in range(3)]  # age, gender, occupation
    for count, most in zip((len(set(column)) for column in numbers), ratings.TABLES, strict=False):
        if count > most:
            raise ValueError(f"it has {count} where {most} were expected")
    return ratings.split(
        torch.tensor([float(person[0]) for person, _ in pairs]),
        torch.tensor([float(film[1][-4:] or UNKNOWN) for _, film in pairs]),
        torch.tensor(numbers).T,
        torch.tensor([_genres(film[4:]) for _, film in pairs]),
        torch.tensor([float(int(rating) >= LIKED) for _, _, rating, *_ in opinions]),
    )


def _genres(flags: list[str]) -> list[int]:
    """Return the numbers of a film's genres, from 1 on, padded with 0."""
    genres = [number for number, flag in enumerate(flags, 1) if flag == "1"]
    return genres + [0] * (ratings.MOST_GENRES - len(genres))


def _numbers(values: Iterable[str]) -> list[int]:
    """Number the values in order of appearance."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


register(MovieLens())
