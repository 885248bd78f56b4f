from cupy import empty_pinned

__all__ = ["empty_pinned"]
