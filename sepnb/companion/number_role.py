"""The role that pastes a number into prose, with a link to where it was computed."""

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from sepnb.companion import pages, record_numbers
from sepnb.records import numbers

logger = logging.getLogger(__name__)

PROVENANCE = "book/provenance"
"""The page on which every record stands."""


class NumberRole(SphinxRole):
    """`{num}`chapter/key:format``: the number that a chapter published for the profile of this build, with a
    link to the chapter; `{num}`experiment/method/metric:format``: one of records, with a link to these.

    What cannot be shown is printed as `??` with one located warning (`sepnb.num`), so `-W` fails.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        source, _, _ = self.text.partition("/")
        profile = self.config.sepnb_profile
        recorded = record_numbers.files(self.text, profile)
        try:
            for path in recorded or [numbers.path(source, profile)]:
                self.env.note_dependency(str(path))
            text = pages.number(self.text, profile)
        except ValueError as problem:
            logger.warning("%s", problem, location=self.get_location(), type="sepnb", subtype="num")
            return [nodes.inline(self.rawtext, "??", classes=["sepnb-missing"])], []
        home = PROVENANCE if recorded else f"notebooks/executed/{source}"
        if home == self.env.docname or home not in self.env.found_docs:
            return [nodes.inline(self.rawtext, text, classes=["sepnb-num"])], []
        target = {
            "refdomain": "std",
            "reftype": "doc",
            "reftarget": f"/{home}",
            "refdoc": self.env.docname,
        }
        link = addnodes.pending_xref("", nodes.inline("", text), refexplicit=True, **target)
        return [nodes.inline("", "", link, classes=["sepnb-num"])], []
