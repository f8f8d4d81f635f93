"""Ratings that made people give made films: who likes what follows from hidden tastes, and partly from chance."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch

SEED = 0
TABLES = PEOPLE, FILMS, AGES, GENDERS, OCCUPATIONS = 943, 1682, 61, 2, 21
"""Numbers of different values, as in MovieLens-100K, so that both fit the same network."""
GENRES, MOST_GENRES = 19, 6
"""Number of genres, and the largest number of a film."""
YOUNGEST, LATEST = 10, 1998
RATINGS = 100_000
TASTES = 8
"""Number of hidden traits by which people and films match."""
HELD_OUT = 5
"""Every so many-th rating is held out."""


class Ratings(Dataset):
    name = "ratings"
    licence = "made here"
    real = "movielens"

    def read(self, path: str, size: int) -> Split:
        generator = torch.Generator().manual_seed(SEED)

        def normal(*shape: int) -> Any:
            return torch.randn(shape, generator=generator)

        def among(choices: int, count: int) -> Any:
            return torch.randint(choices, (count,), generator=generator)

        age, gender, occupation = among(AGES, PEOPLE), among(GENDERS, PEOPLE), among(OCCUPATIONS, PEOPLE)
        year = LATEST - 12 * normal(FILMS).abs()
        genres = _genres(generator)
        taste = normal(GENDERS, TASTES)[gender] + normal(OCCUPATIONS, TASTES)[occupation] + normal(PEOPLE, TASTES)
        traits = (normal(GENRES + 1, TASTES) * (torch.arange(GENRES + 1) > 0)[:, None])[genres].sum(1)
        liking = (taste @ (traits + normal(FILMS, TASTES)).T) / TASTES
        liking += normal(PEOPLE, 1) + normal(FILMS)
        # People and films differ in how many ratings they have. No pair is rated twice.
        often = (normal(PEOPLE, 1) + normal(FILMS)).exp().flatten()
        pairs = torch.multinomial(often, RATINGS, generator=generator)
        person, film = pairs // FILMS, pairs % FILMS
        opinion = liking[person, film] + normal(RATINGS)
        likes = (opinion > opinion.quantile(0.45)).float()
        numbers = [person, film, age[person], gender[person], occupation[person]]
        return split(YOUNGEST + age[person], year[film], torch.stack(numbers, 1), genres[film], likes)


def _genres(generator: Any) -> Any:
    """Return the genres of each film, from 1 on, padded with 0."""
    chosen = torch.rand(FILMS, GENRES, generator=generator).argsort(1)[:, :MOST_GENRES] + 1
    counts = torch.randint(1, MOST_GENRES + 1, (FILMS, 1), generator=generator)
    return chosen * (torch.arange(MOST_GENRES) < counts)


def split(ages: Any, years: Any, numbers: Any, genres: Any, likes: Any) -> Split:
    """Return two scaled inputs, and all numbers for the tables. Every fifth rating is held out."""
    dense = torch.stack(((ages - 30) / 12, (years - 1990) / 14), 1)
    examples = Examples((dense, torch.cat((numbers, genres), 1)), (likes,))
    test = torch.arange(len(examples)) % HELD_OUT == 0
    return Split(examples.part(~test), examples.part(test))


register(Ratings())
