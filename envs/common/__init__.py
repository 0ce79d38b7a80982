"""What all packages share and belongs to no world: errors, suggested commands, untrusted files,
migrations, films.
"""
