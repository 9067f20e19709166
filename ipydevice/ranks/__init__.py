"""Many processes at one look: each tells one row about itself, and what differs between them is marked.

Rows reach each other through the store of a process group that exists already, through report files, or through an
ipyparallel cluster. They are strings and numbers.
"""
