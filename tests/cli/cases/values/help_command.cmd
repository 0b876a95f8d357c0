# tidu help COMMAND is tidu COMMAND --help.
diff <(tidu help hessian) <(tidu hessian --help) && diff <(tidu help) <(tidu --help) && tidu help hesian
