"""`manage.py screens`: every page of a filled console as pictures, at three widths, in both themes."""
