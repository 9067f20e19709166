"""Small tools for devices that people otherwise paste into every project; public as ``ipydevice.to_device`` and so on.

Each stands on what PyTorch already has and is imported when it is first used.
"""
