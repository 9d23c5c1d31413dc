"""The console's pages and actions."""

from django.urls import include, path
from django.views.generic import RedirectView

from monitoring.views import (
    bulk,
    definitions,
    failures,
    find,
    home,
    instances,
    messages,
    probes,
    socket,
    versions,
)
from monitoring.views.actions import (
    operations,
    repair,
    revealing,
    saved_views,
    sending,
    tokens,
)
from monitoring.views.lists import audit, decisions, events, stalled_processes, waits

app_name = "monitoring"

urlpatterns = [
    path("", home.index, name="definitions"),
    path("definitions/<slug:name>/", definitions.detail, name="definition"),
    path(
        "definitions/<slug:name>/picture.<str:form>",
        definitions.definition_picture,
        name="picture",
    ),
    path("definitions/<slug:name>/versions/", versions.index, name="versions"),
    path("definitions/<slug:name>/versions/compare/", versions.compare, name="compare"),
    path("processes/", instances.index, name="instances"),
    path("processes/export.<str:form>", instances.export, name="instances-export"),
    path("processes/<uuid:pk>/", instances.detail, name="instance"),
    path("processes/<uuid:pk>/picture.svg", instances.picture, name="instance-picture"),
    path(
        "processes/<uuid:pk>/history-rows",
        instances.history_rows,
        name="instance-history-rows",
    ),
    path(
        "processes/<uuid:pk>/history.jsonl", instances.history, name="instance-history"
    ),
    *(
        path(
            f"processes/<uuid:pk>/ledger{ending}",
            RedirectView.as_view(
                pattern_name=f"monitoring:instance-history{rows}", query_string=True
            ),
            name=f"instance-ledger{rows}",
        )
        for ending, rows in (
            (".jsonl", ""),
            ("-rows", "-rows"),
        )  # as they were called before
    ),
    path(
        "processes/<uuid:pk>/elements.<str:form>",
        instances.elements,
        name="instance-elements",
    ),
    path(
        "processes/<uuid:pk>/steps/<int:run>/result.json",
        instances.result,
        name="step-result",
    ),
    path("processes/<uuid:pk>/messages/", messages.index, name="instance-messages"),
    path("processes/<uuid:pk>/secrets/", revealing.index, name="instance-secrets"),
    path("processes/<uuid:pk>/repair/", repair.index, name="instance-repair"),
    path(
        "processes/<uuid:pk>/repair/<slug:name>/", repair.change, name="change-repair"
    ),
    path("processes/<uuid:pk>/<slug:name>/", operations.act, name="act"),
    path(
        "processes/<uuid:pk>/steps/<int:run>/<slug:name>/",
        operations.act_on_step,
        name="act-on-step",
    ),
    path("views/", saved_views.index, name="saved-views"),
    path("views/save/", saved_views.save, name="save-view"),
    path("views/<int:pk>/", saved_views.open_view, name="saved-view"),
    path("views/<int:pk>/<slug:name>/", saved_views.act, name="act-on-view"),
    path("stalled/", stalled_processes.index, name="stalled"),
    path("waits/", waits.index, name="waits"),
    path("decisions/", decisions.index, name="decisions"),
    path("events/", events.index, name="events"),
    path("events/send/", sending.index, name="send-event"),
    path("events/<int:pk>/<slug:name>/", operations.act_on_event, name="act-on-event"),
    path("failures/", failures.index, name="failures"),
    path("failures/<slug:cause>/", failures.group, name="failure-group"),
    path("failures/<slug:cause>/<slug:name>/", failures.act, name="act-on-failures"),
    path("audit/", audit.index, name="audit"),
    path("audit/export.<str:form>", audit.export_audit, name="audit-export"),
    path("operations/", bulk.index, name="operations"),
    path("operations/begin/", bulk.begin, name="begin-operation"),
    path("operations/<uuid:pk>/", bulk.detail, name="bulk-operation"),
    path("operations/<uuid:pk>/<slug:name>/", bulk.act, name="act-on-bulk"),
    path("tokens/", tokens.index, name="tokens"),
    path("tokens/<int:pk>/<slug:name>/", tokens.act, name="act-on-token"),
    path("api/", include("monitoring.api.urls")),
    path("find/", find.find, name="find"),
    path("ws/live/", socket.upgrade_required, name="live"),
    path("livez", probes.livez, name="livez"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", probes.metrics, name="metrics"),
]
