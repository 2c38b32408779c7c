"""The role `{verdict}`: the word of the ledger now, with a link to the claim."""

import re

from sepnb import claims
from sepnb.claims.ledger import Row
from sepnb.claims.verdict import Verdict
from sepnb.companion.evidence import headlines

PAGE = "# Book\n\nIt needs none ({verdict}`ID: held`).\n\n(claim-ID)=\n## The claim\n\nText.\n"


def test_it_shows_the_word_of_the_ledger_and_leads_to_the_claim(project, monkeypatch) -> None:
    claim = claims.get("the-untied-term-needs-no-stream")
    monkeypatch.setattr(
        claims, "evaluate", lambda **_: [Row(claim, Verdict("not run", "why"), (), None, None)]
    )
    built = project({"index.md": PAGE.replace("ID", claim.id)})
    assert built.warnings == []
    (badge,) = re.findall(
        r'<span class="sepnb-badge sepnb-not-run">(.*?)</span></a></span>', built.page("index")
    )
    assert f'href="#claim-{claim.id}"' in badge and badge.endswith("not run")


def test_what_is_no_claim_is_one_located_warning(project, monkeypatch) -> None:
    monkeypatch.setattr(claims, "evaluate", lambda **_: [])
    built = project({"index.md": PAGE.replace("ID", "the-untied-term")})
    assert len(built.warnings) == 1 and "index.md:3: WARNING" in built.warnings[0]
    assert "the-untied-term" in built.warnings[0] and "??" in built.page("index")


def test_the_conclusion_names_its_claims_once_and_they_are_claims() -> None:
    named = headlines.headlines()
    assert len(named) == len(set(named)) > 15 and set(named) <= {claim.id for claim in claims.CLAIMS}
    assert headlines.quoted("a {verdict}`one-claim: not run` b") == [("one-claim", "not run")]
