"""What all parts of the project use and no world owns: errors, the command line, strangers' files,
migrations, films.
"""
