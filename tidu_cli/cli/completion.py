"""The scripts by which shells complete commands, options, files and keys, and the answers to them.

A script runs tidu with _TIDU_COMPLETE set and the words of the command line; tidu answers with a line for each candidate.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import click
from click.shell_completion import ShellComplete, add_completion_class

from tidu_cli.cli.candidates import Candidate, candidates

_BASH = """\
_tidu_completion() {
    local kind word
    COMPREPLY=()
    while IFS=$'\\t' read -r kind word; do
        case $kind in
            '') continue ;;
            path) compopt -o filenames ;;
            part) compopt -o nospace ;;
        esac
        COMPREPLY+=("$word")
    done < <(_TIDU_COMPLETE=bash_complete "$1" "$COMP_LINE" "$COMP_POINT" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -o nosort -F _tidu_completion tidu
"""

_ZSH = """\
#compdef tidu
_tidu_completion() {
    local kind word text
    local -a whole whole_texts parts part_texts paths
    while IFS=$'\\t' read -r kind word text; do
        [[ -n $text ]] && text="$word  -- $text" || text=$word
        case $kind in
            path) paths+=("$word") ;;
            part) parts+=("$word"); part_texts+=("$text") ;;
            word) whole+=("$word"); whole_texts+=("$text") ;;
        esac
    done < <(_TIDU_COMPLETE=zsh_complete "${(Q)words[1]}" $((CURRENT - 2)) \\
        "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" "${(@Q)words[CURRENT+1,-1]}" 2>/dev/null)
    (( $#whole )) && compadd -U -V words -l -d whole_texts -a whole
    (( $#parts )) && compadd -U -V parts -S '' -l -d part_texts -a parts
    (( $#paths )) && compadd -U -V paths -f -a paths
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _tidu_completion "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _tidu_completion tidu
fi
"""

_FISH = """\
function _tidu_completion
    set -l before (commandline -opc)
    set -l all (commandline -op)
    set -l at (math (count $before) - 1)
    set -l after
    test (count $all) -gt (math (count $before) + 1); and set after $all[(math (count $before) + 2)..-1]
    set -l current (commandline -ct | string unescape)
    _TIDU_COMPLETE=fish_complete $before[1] $at $before[2..-1] "$current" $after 2>/dev/null
end
complete --command tidu --erase
complete --command tidu --no-files --arguments '(_tidu_completion)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""What a user's shell reads."""


class _Shell(ShellComplete):
    """What the shells share: words come as arguments of the process, so that none needs quoting: AT WORD..."""

    cli: click.Group

    def source(self) -> str:
        """The script, which has no variables."""
        return SCRIPTS[str(self.name)]

    def line(self) -> tuple[list[str], int]:
        """The words after the program's name, and which of them is to be completed."""
        at, *words = sys.argv[1:]
        return words, int(at)

    def complete(self) -> str:
        """The answer to the script: a line for each candidate."""
        return "\n".join(map(self.format_candidate, candidates(self.cli, *self.line())))

    def format_candidate(self, candidate: Candidate) -> str:
        """A line of the answer."""
        return f"{candidate.kind}\t{candidate.word}\t{_summary(candidate.help)}"


def _summary(text: str) -> str:
    """One line of a help text: its first sentence."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.split(r"(?<=[.;:])\s", text, maxsplit=1)[0].rstrip(".;:")


class Zsh(_Shell):
    """Z shell."""

    name = "zsh"

    def format_candidate(self, candidate: Candidate) -> str:
        """A folder's slash is a candidate's end like any other."""
        return super().format_candidate(candidate._replace(is_path=candidate.is_path and not candidate.goes_on))


class Fish(_Shell):
    """fish, which itself puts no space after = and /."""

    name = "fish"

    def format_candidate(self, candidate: Candidate) -> str:
        """A word and its description."""
        return f"{candidate.word}\t{_summary(candidate.help)}".rstrip()


class Bash(_Shell):
    """bash, which hands over the line, since its words end at each of COMP_WORDBREAKS, and wants only the last part back."""

    name = "bash"

    def line(self) -> tuple[list[str], int]:
        """The words of the line, of the one at the cursor what stands before it."""
        text, point = sys.argv[1], int(sys.argv[2])
        before = split(text[:point])
        if not before or before[-1].ended:
            before.append(Word())
        after = split(text[point:])
        if after and not text[point].isspace():
            del after[0]  # the rest of the word at the cursor
        return [word.text for word in (*before[1:], *after)], len(before) - 2

    def complete(self) -> str:
        """The answer: what is to stand in place of the word's last part, quoted as the word is."""
        words = split(sys.argv[1][: int(sys.argv[2])])
        current = words[-1] if words and not words[-1].ended else Word()
        done = _before_last_break(current, sys.argv[3])
        lines = []
        for candidate in candidates(self.cli, *self.line()):
            rest = candidate.word[len(done) :] if candidate.word.startswith(done) else candidate.word
            lines.append(f"{candidate.kind}\t{rest.rstrip('/') if candidate.is_path else rest if current.quote else _quoted(rest)}")
        return "\n".join(lines)


@dataclass
class Word:
    """A word of a command line: its text, without quotes; what is typed of it; the quote that is open; whether a space follows."""

    text: str = ""
    typed: str = ""
    quote: str = ""
    ended: bool = False


_PIECE = re.compile(r"""(\s+)|'([^']*)('?)|"((?:\\.|[^"\\])*\\?)("?)|\\(.?)|([^\s'"\\]+)""", re.S)
"""Space; what is in single quotes, in double quotes, or after a backslash; and plain text."""


def split(line: str) -> list[Word]:
    """The words of a command line, which may end within one, by the shell's rules for quotes and backslashes."""
    words: list[Word] = []
    for piece in _PIECE.finditer(line):
        space, single, single_end, double, double_end, escaped, plain = piece.groups()
        if space:
            if words:
                words[-1].ended = True
            continue
        if not words or words[-1].ended:
            words.append(Word())
        word = words[-1]
        word.typed += piece[0]
        if single is not None:
            word.text, word.quote = word.text + single, "" if single_end else "'"
        elif double is not None:
            word.text, word.quote = word.text + re.sub(r'\\(["\\$`])', r"\1", double), "" if double_end else '"'
        else:
            word.text += plain or escaped
    return words


def _before_last_break(word: Word, breaks: str) -> str:
    """The text of a word up to where bash begins the part that it replaces: its open quote, or its last break."""
    ends = [k + 1 for k, c in enumerate(word.typed) if c in breaks and c not in " \t\n'\"" and word.typed[k - 1 : k] != "\\"]
    at = word.typed.rindex(word.quote) if word.quote else max(ends, default=0)
    return "".join(part.text for part in split(word.typed[:at]))


def _quoted(text: str) -> str:
    return re.sub(r"([^\w@%+=:,./~-])", r"\\\1", text)


def register() -> None:
    """Let click know these shells, in place of its own."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
