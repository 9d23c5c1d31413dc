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
    claims                            which worker holds which work: leases, releasing claims, looking for due work
    invariants                        conditions that the stored rows meet at every moment
    change                            one change of one locked process, of either kind; committing several together
    inbox                             receiving events
    storage                           tables, batches of writes, definitions, results, settled visits

Three trips:

`inbox` stores an event. `drain` claims it, `events.delivery` locks its process and lets the definition decide,
`change.manager` (of a workflow `change.settling`) makes rows of the decision, `storage.batch` sends them.

`drain` claims a step, `steps.session` runs it, and `change.workflow` settles it; `change.settling` decides which steps
follow, `change.following` makes their rows, and the session goes on with one of them. `failures.of_step` takes every
error.

An operator's action is an object in `operations`: `base` locks the process and asks why not, the action's own module
changes it through `change`, and `audit` writes its row in the same commit.
"""
