"""Videos: what they are, every frame's time stamp, frames by time stamp, the rendition.

>>> from ml.imaging.videos import probe_video, read_frame
>>> info = probe_video("sweep.mp4")
>>> rgb = read_frame("sweep.mp4", int(info.frames.pts[0]), table=info.frames)
"""

from ml.imaging.videos.stored_table import load_frame_table, save_frame_table
from ml.imaging.videos.transcode import Rendition, transcode_h264
from ml.imaging.videos.video import iter_frames, poster_frame, probe_video, read_frame

__all__ = [
    "Rendition",
    "iter_frames",
    "load_frame_table",
    "poster_frame",
    "probe_video",
    "read_frame",
    "save_frame_table",
    "transcode_h264",
]
