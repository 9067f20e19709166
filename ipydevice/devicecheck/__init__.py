"""``%%devicecheck``: every device mistake of a piece of code in one run, and every hidden copy.

The room is not called ``check``: that name belongs to the function `ipydevice.check`, and a
submodule of the same name would take its place as soon as it is imported.  Nothing is imported
here, since the magic must be there before torch is.
"""
