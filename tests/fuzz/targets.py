"""The targets, by name."""

from __future__ import annotations

from tests.fuzz.commands import COMMAND_LINES
from tests.fuzz.documents import DOCUMENTS
from tests.fuzz.engines import ENGINE_PROGRAMS
from tests.fuzz.formulas import FORMULAS
from tests.fuzz.loops import LOOPS
from tests.fuzz.models import MODELS
from tests.fuzz.outputs import OUTPUTS
from tests.fuzz.programs import PROGRAMS
from tests.fuzz.special import SPECIAL
from tests.fuzz.target import Target
from tests.fuzz.values import VALUES
from tests.fuzz.work import WORK

_ALL = (DOCUMENTS, VALUES, FORMULAS, COMMAND_LINES, PROGRAMS, ENGINE_PROGRAMS, LOOPS, MODELS, SPECIAL, WORK, OUTPUTS)
TARGETS: dict[str, Target] = {t.name: t for t in _ALL}
