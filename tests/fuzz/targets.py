"""The six targets, by name."""

from __future__ import annotations

from tests.fuzz.commands import COMMAND_LINES
from tests.fuzz.documents import DOCUMENTS
from tests.fuzz.formulas import FORMULAS
from tests.fuzz.outputs import OUTPUTS
from tests.fuzz.programs import PROGRAMS
from tests.fuzz.special import SPECIAL
from tests.fuzz.target import Target
from tests.fuzz.values import VALUES
from tests.fuzz.work import WORK

TARGETS: dict[str, Target] = {t.name: t for t in (DOCUMENTS, VALUES, FORMULAS, COMMAND_LINES, PROGRAMS, SPECIAL, WORK, OUTPUTS)}
