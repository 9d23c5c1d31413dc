from django.apps import AppConfig


class VideoAnalysisConfig(AppConfig):
    """The app of the video analysis example."""

    name = "examples.video_analysis"
    label = "video_analysis"
    verbose_name = "Video analysis"
