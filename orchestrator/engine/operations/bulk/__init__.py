"""Bulk operations as workers carry them out: in short slices, between other work.

`gathering` freezes the selected rows as items, a chunk to a transaction. `group_press` applies the action to several
items in one commit, where the action needs known rows only. `single_press` applies it to the other items, one after the
other, each in a transaction of its own. Each item has a key of its own, so that a repetition after a killed worker acts
once. `slices` runs one slice: it reads the outcomes of items under way, begins the items that `pace` allows, and stores
verdicts and numbers together, under the operation's fence. `slice_timer` lets other work go first.
"""
