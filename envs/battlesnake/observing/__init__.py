"""What observation types are made of: painted planes, their mirrored views, and the starter pack's
six types.
"""
