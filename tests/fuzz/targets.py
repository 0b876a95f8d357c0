"""The targets, by name."""

from __future__ import annotations

from tests.fuzz.inputs.commands import COMMAND_LINES
from tests.fuzz.inputs.documents import DOCUMENTS
from tests.fuzz.inputs.engines import ENGINE_PROGRAMS
from tests.fuzz.inputs.formulas import FORMULAS
from tests.fuzz.inputs.loops import LOOPS
from tests.fuzz.inputs.models import MODELS
from tests.fuzz.inputs.outputs import OUTPUTS
from tests.fuzz.inputs.programs import PROGRAMS
from tests.fuzz.inputs.special import SPECIAL
from tests.fuzz.inputs.values import VALUES
from tests.fuzz.inputs.work import WORK
from tests.fuzz.target import Target

_ALL = (DOCUMENTS, VALUES, FORMULAS, COMMAND_LINES, PROGRAMS, ENGINE_PROGRAMS, LOOPS, MODELS, SPECIAL, WORK, OUTPUTS)
TARGETS: dict[str, Target] = {t.name: t for t in _ALL}
