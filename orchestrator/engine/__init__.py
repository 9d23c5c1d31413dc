"""The runtime: the only writer of the tables.

The rooms, each standing on those below it:

    processes | drain | in_flight     starting and sending; running what is ready, one piece at a time or beside others
                                      where it waits outside
    bulk                              slices of what operators do to many at once
    operations                        what operators do
    transfer                          carrying processes to another installation, and in from there
    events                            delivering an event, carrying out a command, firing a deadline
    steps                             the visits of a workflow's steps that one worker runs in a row
    failures                          what a failed attempt leads to
    claims                            who holds which work: leases, giving back, looking for what is due
    invariants                        what must always hold, asked of the stored rows
    change                            one change of one locked process, of either kind; committing several together
    inbox                             receiving events
    storage                           tables, batches of writes, definitions, results, settled visits

Three trips:

An event is stored by `inbox`. `drain` claims it, `events.delivery` locks its process and lets the definition decide,
`change.manager` (of a workflow `change.settling`) makes rows of the decision, `storage.batch` sends them.

A step is claimed by `drain`, run by `steps.session`, and settled by `change.workflow`; `change.settling` carries out
what follows, `change.following` makes rows of it, and the session goes on with one of them. What goes wrong goes to
`failures.of_step`.

An operator's action is an object in `operations`: `base` locks the process and asks why not, the action's own module
changes it through `change`, and `audit` writes its row in the same commit.
"""
