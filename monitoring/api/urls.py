"""Where programs ask: of what the console has at an address, below `api/` at the same."""

from django.urls import path

from monitoring.api import acting, looking

urlpatterns = [
    path("", looking.index, name="api"),
    path("processes/", looking.processes, name="api-instances"),
    path("processes/<uuid:pk>/", looking.process, name="api-instance"),
    path(
        "processes/<uuid:pk>/repair/<slug:name>/",
        acting.change_repair,
        name="api-change-repair",
    ),
    path("processes/<uuid:pk>/<slug:name>/", acting.act, name="api-act"),
    path(
        "processes/<uuid:pk>/steps/<int:run>/<slug:name>/",
        acting.act_on_step,
        name="api-act-on-step",
    ),
    path("views/", looking.views, name="api-saved-views"),
    path("views/save/", acting.save_view, name="api-save-view"),
    path("views/<int:pk>/<slug:name>/", acting.act_on_view, name="api-act-on-view"),
    path("tokens/", looking.tokens, name="api-tokens"),
    path("tokens/<int:pk>/<slug:name>/", acting.act_on_token, name="api-act-on-token"),
    path("events/", looking.events, name="api-events"),
    path("events/send/", acting.send_event, name="api-send-event"),
    path("events/<int:pk>/", looking.event, name="api-event"),
    path("events/<int:pk>/<slug:name>/", acting.act_on_event, name="api-act-on-event"),
    path("failures/", looking.failures, name="api-failures"),
    path("failures/<slug:cause>/", looking.failure_group, name="api-failure-group"),
    path(
        "failures/<slug:cause>/<slug:name>/",
        acting.act_on_failures,
        name="api-act-on-failures",
    ),
    path("operations/", looking.operations, name="api-operations"),
    path("operations/begin/", acting.begin, name="api-begin-operation"),
    path("operations/<uuid:pk>/", looking.operation, name="api-bulk-operation"),
    path(
        "operations/<uuid:pk>/<slug:name>/", acting.act_on_bulk, name="api-act-on-bulk"
    ),
    path("<path:rest>", looking.nothing, name="api-nothing"),
]
