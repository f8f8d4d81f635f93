"""The Chinese pages say what the English ones say: a change of the English text must be read for the Chinese, too."""

from __future__ import annotations

from pathlib import Path

import pytest
import translations
from translations import TranslationError

PAGE = "README.md"
ENGLISH = """English | [简体中文](README.zh-CN.md)

# tool

Measures 3 cases with `fp32`, see the
[tutorial](docs/tutorial.md).

```
tool run        # it runs
# a heading nowhere
```

## The options: `--all`, and more

Everything.
"""
CHINESE = """[English](README.md) | 简体中文

# tool
<!-- en: tool DIGEST -->

用 `fp32` 测量 3 个用例。见[教程](docs/tutorial.zh-CN.md)。

```
tool run        # 运行
# 这里没有标题
```

## 选项 `--all` 等
<!-- en: the-options---all-and-more DIGEST -->

全部。
"""


def current_chinese(english: str = ENGLISH, chinese: str = CHINESE) -> str:
    """The Chinese page with the digests of all English sections."""
    chinese = chinese.replace("DIGEST", "0" * 12)
    for section in translations.sections(english):
        chinese = translations.accept(english, chinese, section.anchor)
    return chinese


def sentences(english: str = ENGLISH, chinese: str | None = None) -> list[str]:
    """What must be mended of a page."""
    return list(translations.findings(PAGE, english, current_chinese() if chinese is None else chinese))


@pytest.mark.parametrize("page", translations.PAGES)
def test_a_chinese_page_says_what_the_english_one_does(page: str) -> None:
    """Each failure names the section, and what to do."""
    findings = list(translations.findings(page, *translations.read(translations.ROOT, page)))
    assert not findings, "\n".join(findings)


def test_every_chinese_page_is_held_against_an_english_one() -> None:
    """No translation lies about unchecked."""
    root = translations.ROOT
    pages = [*root.glob("*.zh-CN.md"), *(root / "docs").rglob("*.zh-CN.md")]
    assert {page.relative_to(root).as_posix() for page in pages} == set(translations.PAGES.values())


def test_an_accepted_page_has_no_findings() -> None:
    assert sentences() == []


def test_a_changed_word_names_its_section_and_the_command_that_accepts_it() -> None:
    (sentence,) = sentences(ENGLISH.replace("Everything", "Nearly everything"))
    assert sentence == (
        'README.md, section "The options: `--all`, and more": the English text changed since it was translated: '
        "read it, mend README.zh-CN.md, then run "
        "`python tests/translations.py --accept README.md#the-options---all-and-more`."
    )


def test_lines_may_break_elsewhere() -> None:
    """Filling a paragraph again changes nothing that a translator must read."""
    assert sentences(ENGLISH.replace("see the\n[tutorial]", "see\nthe [tutorial]")) == []


def test_a_new_english_section_is_missing_in_the_chinese_page() -> None:
    (sentence,) = sentences(ENGLISH + "\n## New\n\nText.\n")
    digest = translations.sections("## New\n\nText.\n")[0].digest
    assert sentence.startswith('README.md, section "New": README.zh-CN.md lacks it')
    assert f"`<!-- en: new {digest} -->`" in sentence


def test_a_section_that_the_english_page_lost_is_extra() -> None:
    (sentence,) = sentences(ENGLISH[: ENGLISH.index("## The options")])
    assert sentence.startswith(
        'README.zh-CN.md: "选项 `--all` 等" translates `the-options---all-and-more`, which README.md'
    )


def test_sections_in_another_order_are_seen() -> None:
    bar, tool, rest = ENGLISH.partition("# tool")
    first, options, last = (tool + rest).partition("## The options")
    assert sentences(f"{bar}{options}{last}\n{first}") == [
        "README.zh-CN.md: the sections come in another order than those of README.md."
    ]


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ("tool run  ", "tool walk ", "code block 1 differs, first where the English one has `tool run #`"),
        ("# 运行", "", "code block 1 differs, first where the English one has `tool run #`"),
        ("\n# 这里没有标题", "", "code block 1 differs, first where the English one has ` #`"),
        ("全部。", "```\nmore\n```", "it has 1 code blocks instead of 0"),
        ("`fp32`", "`fp16`", "it lacks the name in code font fp32"),
        ("测量 3 个", "测量 4 个", "it has the figure 4, which the English section does not have"),
        ("tutorial.zh-CN.md", "tutorial.md", "it lacks the link docs/tutorial.zh-CN.md"),
        ("## 选项", "### 选项", "the heading has another level"),
    ],
)
def test_commands_names_figures_and_links_are_those_of_the_english_section(
    before: str, after: str, difference: str
) -> None:
    """What needs no Chinese to compare is compared, whatever was accepted."""
    chinese = current_chinese()
    assert before in chinese
    assert any(difference in sentence for sentence in sentences(chinese=chinese.replace(before, after)))


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_each_page_begins_with_a_link_to_the_other(page: str) -> None:
    texts = {"README.md": ENGLISH, "README.zh-CN.md": current_chinese()}
    texts[page] = texts[page].split("\n", 2)[2]
    (sentence,) = sentences(*texts.values())
    assert sentence.startswith(f"{page}: the first line must be ")


def test_a_chinese_heading_without_its_comment_is_named() -> None:
    chinese = current_chinese().replace("<!-- en: tool ", "<!-- ")
    (sentence,) = sentences(chinese=chinese)
    assert sentence.startswith('README.zh-CN.md: "tool" does not say which English section it translates')


def test_two_sections_of_one_name_are_refused() -> None:
    """In either page: a digest must have one owner."""
    (english,) = sentences(ENGLISH + "\n# tool\n")
    assert english == "README.md: more than one section has the heading `tool`: change all but one."
    (chinese,) = sentences(chinese=current_chinese() + "\n# 又一个\n<!-- en: tool 000000000000 -->\n")
    assert chinese == "README.zh-CN.md: more than one section translates `tool`: change all but one."


@pytest.mark.parametrize(
    ("english", "chinese", "reason"),
    [
        (ENGLISH, current_chinese(), "there is no English section `gone`"),
        (ENGLISH + "\n## Gone\n", current_chinese(), "no Chinese section translates `gone`"),
    ],
)
def test_what_is_in_one_page_alone_cannot_be_accepted(english: str, chinese: str, reason: str) -> None:
    with pytest.raises(TranslationError, match=reason):
        translations.accept(english, chinese, "gone")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with small pages in both languages."""
    tutorial = "English | [简体中文](tutorial.zh-CN.md)\n\n# Tutorial\n"
    chinese_tutorial = "[English](tutorial.md) | 简体中文\n\n# 教程\n<!-- en: tutorial DIGEST -->\n"
    pages = {
        "README.md": ENGLISH,
        "README.zh-CN.md": current_chinese(),
        "docs/tutorial.md": tutorial,
        "docs/tutorial.zh-CN.md": current_chinese(tutorial, chinese_tutorial),
    }
    (tmp_path / "docs").mkdir()
    for page, text in pages.items():
        (tmp_path / page).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_command_says_what_changed_until_it_is_accepted(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Accepting a section changes its digest and nothing else."""
    (checkout / "README.md").write_text(ENGLISH.replace("Measures", "Times"), encoding="utf-8")
    assert translations.main([], checkout) == 1
    assert capsys.readouterr().out.count("--accept README.md#tool") == 1
    assert translations.main(["--accept", "README.md#tool"], checkout) == 0
    assert capsys.readouterr().out == "the Chinese pages say what the English ones do\n"
    text = (checkout / "README.zh-CN.md").read_text(encoding="utf-8")
    pairs = zip(text.splitlines(), current_chinese().splitlines(), strict=True)
    (line,) = [line for line, before in pairs if line != before]
    assert line.startswith("<!-- en: tool ")


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            "CONTRIBUTING.md#tests",
            "no page `CONTRIBUTING.md` is translated; those that are: README.md, docs/tutorial.md",
        ),
        ("README.md#nowhere", "README.md#nowhere: there is no English section `nowhere`"),
    ],
)
def test_the_command_refuses_a_section_that_there_is_not(
    section: str, reason: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        translations.main(["--accept", section], checkout)
    assert end.value.code == 2
    assert reason in capsys.readouterr().err
