"""MovieLens-100K: 100,000 real ratings of films, as the package RecBole brings them. Only its data files are read."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Dataset, Examples, Split
from ipexperf.errors import WorkerError

FOLDER = Path("dataset_example") / "ml-100k"
FILES = ("ml-100k.inter", "ml-100k.user", "ml-100k.item")
"""Ratings, people and films: a line each, its fields between tabs, with their names in the first line."""
SHA256 = "7f61671b3989312b49bf2bbd2aca9906298b8766c7f3c167b67aae0addf747da"
GENRES = 6
"""No film has more."""
LIKED = 4.0
"""A rating of so much, of 5, is a yes."""
FIELDS = ("user_id", "item_id", "age", "gender", "occupation")
"""What a pair has one value of each; beside them a film has several genres."""

Row = dict[str, str]


class MovieLens(Dataset):
    name = "movielens"
    licence = "for research, not to be passed on (GroupLens), in recbole, which is MIT"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        spec = importlib.util.find_spec("recbole")
        if spec is None or spec.origin is None:
            return None, "MovieLens comes with recbole, which is not installed: see make data"
        path = Path(spec.origin).parent / FOLDER
        absent = [name for name in FILES if not (path / name).is_file()]
        return (None, f"recbole has no {', '.join(absent)} in {path}") if absent else (str(path), None)

    def read(self, path: str, size: int) -> Split:
        """Every fifth rating is held out. The time of a rating is no input: it would tell who it is."""
        del size
        texts = [(Path(path) / name).read_bytes() for name in FILES]
        found = hashlib.sha256(b"".join(texts)).hexdigest()
        if found != SHA256:
            raise WorkerError("error", f"the ratings in {path} are not the known ones: sha256 {found}")
        return _split(*(text.decode() for text in texts))


def _split(ratings: str, users: str, items: str) -> Split:
    people = {row["user_id"]: row for row in rows(users)}
    films = {row["item_id"]: row for row in rows(items)}
    pairs = [{**people[row["user_id"]], **films[row["item_id"]], **row} for row in rows(ratings)]
    numbered = [_numbers(row[name] for row in pairs) for name in FIELDS]
    genres = _genres(row["class"] for row in pairs)
    sparse = torch.tensor([[*one, *several] for *one, several in zip(*numbered, genres, strict=True)])
    dense = torch.tensor([[_scaled(row["age"], 30, 12), _scaled(row["release_year"], 1990, 14)] for row in pairs])
    likes = torch.tensor([float(float(row["rating"]) >= LIKED) for row in pairs])
    examples = Examples((dense, sparse), (likes,))
    test = torch.arange(len(pairs)) % 5 == 0
    return Split(examples.part(~test), examples.part(test))


def rows(text: str) -> list[Row]:
    """The lines of a file by the names of their fields, which have their kind behind them: `age:token`."""
    first, *lines = text.splitlines()
    names = [name.partition(":")[0] for name in first.split("\t")]
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def _numbers(values: Iterable[str]) -> list[int]:
    """Each value by its number, in the order in which they come."""
    known: dict[str, int] = {}
    return [known.setdefault(value, len(known)) for value in values]


def _genres(values: Iterable[str]) -> list[list[int]]:
    """The genres of each film by their numbers; 0 means that there is no further one."""
    known: dict[str, int] = {}
    found = [[known.setdefault(genre, len(known) + 1) for genre in value.split()] for value in values]
    return [numbers + [0] * (GENRES - len(numbers)) for numbers in found]


def _scaled(text: str, middle: float, spread: float) -> float:
    """A number of about the size of 1; 0 where there is none, but a word."""
    return (float(text) - middle) / spread if text.isdigit() else 0.0


registry.datasets.add("movielens", MovieLens())
