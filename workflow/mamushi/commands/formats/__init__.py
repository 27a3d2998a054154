"""What a removal list can be written as, one file each, found by its name: ``--to NAME``.

Each has a docstring whose first line is its help, ``FOLDER`` (whether it writes a folder),
``TEXTS`` (whether it needs the table with the texts), and ``write(source, out)``, where ``out``
becomes what was asked for once that has returned.
"""
