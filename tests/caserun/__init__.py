"""Runs small failing notebooks in real IPython shells and judges what ipydevice says and does about them."""
