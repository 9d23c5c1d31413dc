"""Bulk operations as workers carry them out: a short slice at a time, between other work.

`gathering` freezes what is selected, a chunk to a transaction. `together` does the action to several items in one
commit, where nothing but rows that are known has to be written; `pressing` does it to the others, one after the other,
each in a transaction of its own. Each item has a key of its own, so that whoever repeats it after a killed worker acts
once. `running` is one slice: it looks at what is under way, begins what `pace` allows, and stores verdicts and numbers
together, under the operation's fence. `turn` lets other work go first.
"""
