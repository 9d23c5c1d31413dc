"""The console's pages and actions."""

from django.urls import path

from monitoring.views import (
    audit,
    bulk,
    decisions,
    definitions,
    events,
    failures,
    find,
    home,
    instances,
    operations,
    probes,
    socket,
)

app_name = "monitoring"

urlpatterns = [
    path("", home.index, name="definitions"),
    path("definitions/<slug:name>/", definitions.detail, name="definition"),
    path(
        "definitions/<slug:name>/picture.<str:form>",
        definitions.picture,
        name="picture",
    ),
    path("processes/", instances.index, name="instances"),
    path("processes/<uuid:pk>/", instances.detail, name="instance"),
    path("processes/<uuid:pk>/picture.svg", instances.picture, name="instance-picture"),
    path(
        "processes/<uuid:pk>/ledger-rows",
        instances.ledger_rows,
        name="instance-ledger-rows",
    ),
    path("processes/<uuid:pk>/ledger.jsonl", instances.ledger, name="instance-ledger"),
    path(
        "processes/<uuid:pk>/steps/<int:run>/result.json",
        instances.result,
        name="step-result",
    ),
    path("processes/<uuid:pk>/<slug:name>/", operations.act, name="act"),
    path(
        "processes/<uuid:pk>/steps/<int:run>/<slug:name>/",
        operations.act_on_step,
        name="act-on-step",
    ),
    path("decisions/", decisions.index, name="decisions"),
    path("events/", events.index, name="events"),
    path("events/<int:pk>/<slug:name>/", operations.act_on_event, name="act-on-event"),
    path("failures/", failures.index, name="failures"),
    path("failures/<slug:cause>/", failures.group, name="failure-group"),
    path("audit/", audit.index, name="audit"),
    path("audit/export.<str:form>", audit.export, name="audit-export"),
    path("operations/", bulk.index, name="operations"),
    path("operations/begin/", bulk.begin, name="begin-operation"),
    path("operations/<uuid:pk>/", bulk.detail, name="bulk-operation"),
    path("operations/<uuid:pk>/<slug:name>/", bulk.act, name="act-on-bulk"),
    path("find/", find.find, name="find"),
    path("ws/live/", socket.live, name="live"),
    path("livez", probes.livez, name="livez"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", probes.metrics, name="metrics"),
]
