"""Videos: what they are, every frame's time stamp, frames by time stamp, the rendition.

>>> from ml.imaging.videos import probe_video, read_frame
>>> info = probe_video("sweep.mp4")
>>> rgb = read_frame("sweep.mp4", int(info.frames.pts[0]))
"""

from ml.imaging.videos.transcode import Rendition, transcode_h264
from ml.imaging.videos.video import iter_frames, poster_frame, probe_video, read_frame

__all__ = [
    "Rendition",
    "iter_frames",
    "poster_frame",
    "probe_video",
    "read_frame",
    "transcode_h264",
]
