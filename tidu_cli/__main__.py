"""Where the program begins, as `tidu` and as `python -m tidu_cli`: with how signals end it, before anything else is imported."""

# What is behind the module `signal`, which takes ten times as long to import as all that comes before it here.
import _signal as signal  # type: ignore[import-not-found]

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # and not ignored, as of what a script runs in the background
    # An interrupt ends the process at once and without a word, wherever it is: shells say 130. Python's own way would be an
    # exception, of which imports, callbacks and finalizers print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
if hasattr(signal, "SIGPIPE"):
    # A reader that has seen enough (`| head`) ends us quietly, as it does the GNU tools.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def main() -> None:
    """Run the command line of this process. Nothing is collected until a command begins.

    What is imported stays. To look for garbage in it, now and then and as the process ends, is an eighth of a small command.
    """
    import gc

    gc.disable()
    from tidu_cli.cli.main import main as run

    gc.freeze()  # also of what has no command, such as --version and completion
    run()


if __name__ == "__main__":
    main()
