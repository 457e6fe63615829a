"""What text of strangers cannot do on a report's page, and whom the page shuts out: nobody."""

import itertools
import re
import shutil
import subprocess

import pytest

from seal.report.html import write_report
from tests.report.pages import (
    EVIL,
    ORIGINAL,
    evolution,
    generations,
    make_evolution,
    make_run,
    page_of,
    patch,
)

CHROMIUM = shutil.which("chromium")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def evil_pages(tmp_path):
    run = make_run(tmp_path, evil=True)
    words = ORIGINAL.with_texts({"a.affordance": EVIL, "b.constraint.x": EVIL})
    first, second = generations()
    evil = patch(EVIL, before=EVIL, after=f"{EVIL} more", rationale=EVIL, reason=EVIL)
    first = first.model_copy(update={"candidate": words.id, "patches": (evil,), "reason": EVIL})
    second = second.model_copy(update={"parent": words.id, "candidate": words.id})
    found = evolution(generations=(first, second), candidate=words.id)
    return run, make_evolution(tmp_path / "evolve", found, words=words, policy=EVIL)


def test_text_of_strangers_stays_text(tmp_path):
    for run in evil_pages(tmp_path):
        page = page_of(run)
        assert EVIL.replace("\u202e", "\\u202e").split("<img")[0] in page.text
        assert "<script" not in page.html.lower()
        assert "\u202e" not in page.html
        assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "link", "object"}


def test_a_page_reaches_for_nothing_and_forbids_itself_to(tmp_path):
    for run in (*evil_pages(tmp_path), make_evolution(tmp_path / "plain", evolution())):
        page = page_of(run)
        policies = [a["content"] for _, a in page.tags if "http-equiv" in a]
        assert policies == [POLICY]
        for tag, attributes in page.tags:
            for name, value in attributes.items():
                assert not name.startswith("on"), f"<{tag} {name}>"
                assert name not in ("src", "style", "srcset", "action"), f"<{tag} {name}>"
                assert name != "href" or value.startswith("#"), f"<{tag} {name}={value}>"
        assert not re.search(r"(https?:)?//|url\(|@import", page.html)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_runs_nothing_of_it(tmp_path):
    run, _ = evil_pages(tmp_path)
    path = write_report(run)
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    flags += " --disable-background-networking --disable-component-update --disable-sync"
    profile = f"--user-data-dir={tmp_path / 'chromium'}"
    shown = subprocess.run(
        [CHROMIUM, *flags.split(), profile, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "<title>talker on lamp: a SEAL run</title>" in shown
    assert "&lt;script&gt;" in shown


def test_pages_are_accessible(tmp_path):
    run = make_run(tmp_path)
    for page in (page_of(run), page_of(make_evolution(tmp_path / "evolve", evolution()))):
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
        assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
        assert all(
            "aria-label" in attributes or "aria-hidden" in attributes
            for tag, attributes in page.tags
            if tag == "svg"
        )
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        links = [a["href"][1:] for tag, a in page.tags if tag == "a"]
        assert len(ids) == len(set(ids))
        assert set(links) <= set(ids)
