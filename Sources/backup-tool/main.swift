import Glibc

exit(Tool.run())
