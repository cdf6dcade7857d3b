"""Arrays on a device as CuPy's users have them, and what moves between the device and the host."""

import numpy as np


class OnDevice(np.ndarray):
    """An array that says that it is on a device, for the device whose arrays are NumPy's."""

    __cuda_array_interface__ = property(lambda self: self.__array_interface__)


class Sparse:
    """What is read of a sparse matrix on a device."""

    def __init__(self, device, a):
        self.format, self.shape = a.format, a.shape
        arrays = (put(device, part) for part in (a.data, a.indices, a.indptr))
        self.data, self.indices, self.indptr = arrays


def put(device, array):
    """A device array, which is known as one."""
    there = device.upload(np.ascontiguousarray(array))
    return there.view(OnDevice) if device.xp is np else there


def numeric(factor):
    """Return the factor of a backend that a factor has."""
    return factor._numbers.factor


def watch(device, monkeypatch):
    """Return lists of the sizes of copies from a device and to it, and of launched kernels."""
    moved = {"down": [], "up": [], "kernels": []}
    download, later, kernel = device.download, device.later, device.kernel
    staged, see = device.staged, getattr(device, "_enqueue", lambda note: note())

    def counted(array):
        moved["down"].append(array.size)
        return download(array)

    def sent(arrays, piece=None):
        moved["up"].extend(array.size for array in arrays)
        return later(arrays, piece)

    class Counted:
        """What is staged; what graphs of CUDA copy is not seen."""

        def __init__(self, array):
            self.there = staged(array)
            self.host = self.there.host

        def fetch(self):
            see(lambda: moved["down"].append(self.host.size))
            self.there.fetch()

        def send(self):
            moved["up"].append(self.host.size)
            self.there.send()

    def launched(file, entry, *rest, **constants):
        found = kernel(file, entry, *rest, **constants)

        def launch(*arguments):
            see(lambda: moved["kernels"].append(entry))
            return found(*arguments)

        return launch

    monkeypatch.setattr(device, "download", counted)
    monkeypatch.setattr(device, "later", sent)
    monkeypatch.setattr(device, "kernel", launched)
    monkeypatch.setattr(device, "staged", Counted)
    return moved


def forget(traffic, factor):
    factor._numbers.factor.entries.pattern.finish()  # a thread may be at work for the first solve
    for sizes in traffic.values():
        sizes.clear()
