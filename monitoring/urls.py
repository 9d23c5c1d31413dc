"""The console's pages and actions."""

from django.urls import path

from monitoring.views import decisions, definitions, events, find, instances, operations

app_name = "monitoring"

urlpatterns = [
    path("", definitions.index, name="definitions"),
    path("definitions/<slug:name>/", definitions.detail, name="definition"),
    path(
        "definitions/<slug:name>/picture.<str:form>",
        definitions.picture,
        name="picture",
    ),
    path("processes/", instances.index, name="instances"),
    path("processes/<uuid:pk>/", instances.detail, name="instance"),
    path("processes/<uuid:pk>/picture.svg", instances.picture, name="instance-picture"),
    path("processes/<uuid:pk>/retry/", operations.retry, name="retry"),
    path("processes/<uuid:pk>/escalate/", operations.escalate, name="escalate"),
    path("processes/<uuid:pk>/cancel/", operations.cancel, name="cancel"),
    path("processes/<uuid:pk>/redo/", operations.redo, name="redo"),
    path("processes/<uuid:pk>/resume/", operations.resume, name="resume"),
    path("processes/<uuid:pk>/restart/", operations.restart, name="restart"),
    path("processes/<uuid:pk>/steps/<int:run>/skip/", operations.skip, name="skip"),
    path(
        "processes/<uuid:pk>/steps/<int:run>/decide/", operations.decide, name="decide"
    ),
    path(
        "processes/<uuid:pk>/steps/<int:run>/result.json",
        instances.result,
        name="step-result",
    ),
    path("decisions/", decisions.index, name="decisions"),
    path("events/", events.index, name="events"),
    path("events/<int:pk>/redeliver/", operations.redeliver, name="redeliver"),
    path("events/<int:pk>/discard/", operations.discard, name="discard"),
    path("failures/", events.failures, name="failures"),
    path("find/", find.find, name="find"),
]
