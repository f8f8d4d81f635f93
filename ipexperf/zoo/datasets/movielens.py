"""MovieLens-100K: 100,000 real ratings of films, from the package RecBole, of which only the data files are read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ipexperf.ext import Dataset, Examples, Split, register, torch
from ipexperf.zoo.datasets import _package

FOLDER = "dataset_example/ml-100k"
FILES = ("ml-100k.inter", "ml-100k.user", "ml-100k.item")
"""Files of ratings, people and films: tab-separated, with names in the first line."""
SHA256 = "7f61671b3989312b49bf2bbd2aca9906298b8766c7f3c167b67aae0addf747da"
GENRES = 6
"""Largest number of genres of a film."""
LIKED = 4.0
"""Ratings from this on, of 5, count as a yes."""
FIELDS = ("user_id", "item_id", "age", "gender", "occupation")
"""Categorical inputs with one value each. A film also has several genres."""

Row = dict[str, str]


class MovieLens(Dataset):
    name = "movielens"
    licence = "for research, not to be passed on (GroupLens), in recbole, which is MIT"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        absent = "MovieLens comes with recbole, which is not installed: see make data"
        return _package.find("recbole", "recbole", absent, FOLDER, *(f"{FOLDER}/{name}" for name in FILES))

    def read(self, path: str, size: int) -> Split:
        """Hold out every fifth rating. The time of a rating is no input: it would identify the person."""
        del size
        texts = [(Path(path) / name).read_bytes() for name in FILES]
        _package.check(b"".join(texts), SHA256, f"the ratings in {path} are not the known ones")
        return _split(*(text.decode() for text in texts))


def _split(ratings: str, users: str, items: str) -> Split:
    people = {row["user_id"]: row for row in rows(users)}
    films = {row["item_id"]: row for row in rows(items)}
    pairs = [{**people[row["user_id"]], **films[row["item_id"]], **row} for row in rows(ratings)]
    numbered = [_numbers(row[name] for row in pairs) for name in FIELDS]
    genres = _genres(row["class"] for row in pairs)
    sparse = torch.tensor([[*fields, *of_film] for *fields, of_film in zip(*numbered, genres, strict=True)])
    dense = torch.tensor([[_scaled(row["age"], 30, 12), _scaled(row["release_year"], 1990, 14)] for row in pairs])
    likes = torch.tensor([float(float(row["rating"]) >= LIKED) for row in pairs])
    examples = Examples((dense, sparse), (likes,))
    test = torch.arange(len(pairs)) % 5 == 0
    return Split(examples.part(~test), examples.part(test))


def rows(text: str) -> list[Row]:
    """Return the lines of a file by field names. The header has types as suffixes: `age:token`."""
    first, *lines = text.splitlines()
    names = [name.partition(":")[0] for name in first.split("\t")]
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def _numbers(values: Iterable[str]) -> list[int]:
    """Number the values in order of appearance."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _genres(values: Iterable[str]) -> list[list[int]]:
    """Return the numbers of each film's genres, padded with 0."""
    by_genre: dict[str, int] = {}
    indices = [[by_genre.setdefault(genre, len(by_genre) + 1) for genre in value.split()] for value in values]
    return [numbers + [0] * (GENRES - len(numbers)) for numbers in indices]


def _scaled(text: str, middle: float, spread: float) -> float:
    """Scale a number to about 1. Return 0 for a word."""
    return (float(text) - middle) / spread if text.isdigit() else 0.0


register(MovieLens())
