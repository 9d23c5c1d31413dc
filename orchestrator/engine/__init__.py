"""The runtime: the only writer of the tables.

The rooms, each standing on those below it:

    loops         running the ready work of a queue, one piece at a time or many at once where it waits outside
    operations    what operators do, to one process or in `bulk` to many
    events        delivering an event, carrying out a command, firing a deadline
    steps         the visits of a workflow's steps that one worker runs in a row
    notices       what people are told of, gathered and sent
    transfer      carrying processes to another installation, and in from there
    work          which worker holds which work: leases, releasing claims, due work; what a failed attempt leads to
    invariants    conditions that the stored rows meet at every moment
    processes     starting processes and sending events
    change        one change of one locked process, of either kind; committing several together
    storage       definitions, plans, results, receipts, the inbox, pruning; calling code of the application
    sql           how rows are written: tables, batches of statements, group commits

Three trips:

`storage.inbox` stores an event. `loops.drain` claims it, `events.delivery` locks its process and lets the definition
decide, `change.manager` (of a workflow `change.settling`) makes rows of the decision, `sql.batch` sends them.

`loops.drain` claims a step, `steps.session` runs it, and `change.workflow` settles it; `change.settling` decides which
steps follow, `change.following` makes their rows, and the session goes on with one of them. `work.step_failures` takes
every error.

An operator's action is an object in `operations`: `base` locks the process and asks why not, the action's own module
changes it through `change`, and `audit` writes its row in the same commit.
"""
