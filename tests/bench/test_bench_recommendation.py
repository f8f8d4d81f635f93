"""Recommendation: how answers are scored, how ratings are read, and what DLRM computes on stock PyTorch."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.modes import train
from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import ratings
from ipexperf.zoo.datasets.movielens import FILES, MovieLens
from ipexperf.zoo.datasets.ratings import MOST_GENRES

torch = pytest.importorskip("torch")

from ipexperf.proof import label
from ipexperf.zoo.models._dlrm import Dlrm

RATINGS = """\
7\t30\t5\t881250949
7\t10\t3\t881250950
9\t30\t4\t881250951
9\t20\t1\t881250952
7\t20\t4\t881250953
9\t10\t2\t881250954
"""
PEOPLE = """\
7|42|F|writer|94043
9|30|M|other|12345
"""
FILMS = """\
10|One|01-Jan-1990||a|0|0|1
20|Two|||b|1|1|1
30|Th\u00e9 Third|02-Feb-2004||c|1|0|0
"""
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files in the published format."""
    for name, text in zip(FILES, (RATINGS, PEOPLE, FILMS), strict=True):
        (tmp_path / name).write_text(text, encoding="latin-1")
    return tmp_path


@given(PAIRS)
def test_the_score_is_the_share_of_pairs_in_the_right_order(pairs: list[tuple[int, bool]]) -> None:
    """Counted by hand over all pairs of one liked and one not; equal numbers are half right."""
    task = registry.tasks.get("recommendation")
    liked, disliked = ([value for value, like in pairs if like is wanted] for wanted in (True, False))
    score = task.score(
        (torch.tensor([float(value) for value, _ in pairs]),), (torch.tensor([float(like) for _, like in pairs]),)
    )
    wins = [(better > worse) + (better == worse) / 2 for better in liked for worse in disliked]
    assert math.isnan(score) if not wins else score == pytest.approx(sum(wins) / len(wins))


def test_ratings_become_numbers_and_every_fifth_is_held_out(folder: Path) -> None:
    """A person, a film and what is known of both, each by its number; 0 is no further genre."""
    split = MovieLens().read(str(folder), 32)
    assert (len(split.train), len(split.test)) == (4, 2)
    dense, sparse = split.train.inputs
    assert sparse.shape == (4, 5 + MOST_GENRES)
    assert sparse[0].tolist() == [0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0]  # person 7, the second film that came, its genre
    assert sparse[2].tolist() == [1, 2, 1, 1, 1, 1, 2, 3, 0, 0, 0]  # person 9, Two: all three genres
    assert dense[0].tolist() == pytest.approx([1.0, 0.0])
    assert dense[2].tolist() == pytest.approx([0.0, 0.0])  # no year is known of Two
    assert split.train.targets[0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert split.test.targets[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [("u.user", "7|42|F|writer|94043"), ("u.data", "7\t30\tgood\t1"), ("u.item", "10|One|soon||a|0|0|1")],
)
def test_files_that_are_not_movielens_are_refused(folder: Path, name: str, text: str) -> None:
    """A person is missing, a rating is a word, a film has no year of release."""
    (folder / name).write_text(text)
    with pytest.raises(WorkerError, match=r"is not MovieLens-100K, .*: unpack ml-100k\.zip there again"):
        MovieLens().read(str(folder), 32)


def test_more_people_than_the_network_has_rows_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratings, "TABLES", (1, *ratings.TABLES[1:]))
    with pytest.raises(WorkerError, match="it has 2 where 1 were expected"):
        MovieLens().read(str(folder), 32)


def network() -> Any:
    torch.manual_seed(0)
    return Dlrm((5, 7, 4), 2, 8)


def test_the_network_is_what_was_published() -> None:
    """Written down a second time, one example at a time: tables, all products by pairs, and the two MLPs."""
    net = network().double().eval()
    dense, sparse = torch.randn(3, 2).double(), torch.tensor([[1, 6, 0, 3], [4, 0, 2, 2], [0, 1, 1, 3]])
    outputs = net(dense, sparse).detach()
    for number in range(3):
        vector = net.bottom(dense[number])
        first, second, *several = sparse[number].tolist()
        rows = [net.bags[0].weight[first], net.bags[1].weight[second], net.bags[2].weight[several].sum(0)]
        vectors = [vector, *rows]
        products = [vectors[i] @ vectors[j] for i in range(4) for j in range(i)]
        expected = net.top(torch.cat([vector, torch.stack(products)])).detach()
        assert float(outputs[number]) == pytest.approx(float(expected), rel=1e-9)


def test_a_matrix_product_of_mkls_is_in_single_precision() -> None:
    """IPEX's packed layers say so by their name alone; in a graph they tell no operands at all."""
    eager = {"name": "torch_ipex::ipex_MKLSGEMM", "args": {"Input type": ["float", "float", "float"]}}
    kernels = label.kernels([eager, {"name": "ipex_prepack::mkl_sgemm_run"}, {"name": "ipex_prepack::linear_run"}])
    assert [kernel.dtype for kernel in kernels] == ["float32", "float32"]
    assert label.dtype_of_kernels(kernels, "fp32").ok
    assert not label.dtype_of_kernels(kernels, "bf16").ok


def test_what_updates_itself_is_counted_apart() -> None:
    """It moves without the optimizer, which has the rest; a note says so. What only says so is caught."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    net[1].updated_by = "a test"
    before = [value.detach().clone() for value in train.self_updated_parameters(net)]
    rest, everything = (
        torch.optim.SGD(parameters) for parameters in (train.optimised_parameters(net), net.parameters())
    )
    [still] = train.check_self_updated(net, rest, before)
    assert (still.ok, still.found) == (False, "0 of 2 moved, 0 of them known to the optimizer or with a gradient")
    with torch.no_grad():
        for value in net[1].parameters():
            value.add_(1)
    assert [train.check_self_updated(net, optimizer, before)[0].ok for optimizer in (rest, everything)] == [True, False]
    assert train.notes_of_self_updated(net) == ["2 parameters are updated in the backward of a test, by no optimizer"]
