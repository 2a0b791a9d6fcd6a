"""Checks of arguments: each error names the argument, its value and what is allowed."""

from __future__ import annotations

import operator

import numpy as np

MAX_ORDER = 1024
LARGEST = 1e300  # of samples and times, so that sums and differences of a few stay finite
LARGEST_FEATURE = 1e75  # of keys, queries, features and values, so that products of four stay finite
METHODS = ("exact", "bilinear", "backward_euler", "euler")


def whole_number(name: str, value, low: int = 1, high: int | None = None) -> int:
    """``value`` as an int in [low, high]; 16.0 and NumPy integers pass, 1.5, True and "16" do not."""
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"
    refusal = f"{name} must be a whole number {allowed}, not {value!r}"
    if isinstance(value, bool | np.bool_):
        raise ValueError(refusal)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(refusal) from None
    if number < low or (high is not None and number > high):
        raise ValueError(refusal)
    return number


def order_of(order) -> int:
    """The order M, a whole number from 1 to ``MAX_ORDER``."""
    return whole_number("order", order, 1, MAX_ORDER)


def choice(name: str, value, allowed: tuple[str, ...]) -> str:
    """``value`` if it is one of the allowed names."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def number_within(
    name: str, value, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> float:
    """``value`` as a float in [low, high]; an open end is excluded."""
    bounds = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number in {bounds}, not {value!r}") from None
    if not (low <= number <= high) or (open_low and number == low) or (open_high and number == high):
        raise ValueError(f"{name} must be in {bounds}, not {value!r}")
    return number


def real_array(name: str, value, ndim: int | tuple[int, ...], *, largest: float = LARGEST) -> np.ndarray:
    """``value`` as a float64 array with one of the allowed numbers of axes, not empty, finite, none over ``largest``.

    Booleans and integers become floats. Object, string and complex arrays are refused by name; the first NaN,
    infinity, masked or too large number is named with its position.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged nested lists
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, not dtype {array.dtype}")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        axes = " or ".join(str(n) for n in allowed)
        raise ValueError(f"{name} must have {axes} axes, not {array.ndim} (shape {array.shape})")
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); it needs at least one number")
    if np.ma.is_masked(value):  # np.asarray drops the mask, and what it hides would count
        _refuse(name, array, np.ma.getmaskarray(value), "no number may be masked")
    with np.errstate(over="ignore"):  # a long double may be over float64's range
        array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        _refuse(name, array, ~np.isfinite(array), "every number must be finite")
    if max(-array.min(), array.max()) > largest:
        _refuse(name, array, np.abs(array) > largest, f"sizes up to {largest:g} can be used")
    return array


def _refuse(name: str, array: np.ndarray, bad: np.ndarray, rule: str) -> None:
    position = tuple(int(i) for i in np.argwhere(bad)[0])
    where = position[0] if len(position) == 1 else position
    at = f" at position {where}" if position else ""
    raise ValueError(f"{name} holds {array[position]}{at}; {rule}")


def rows(name: str, value, columns: int | None = None, *, largest: float = LARGEST) -> np.ndarray:
    """A (n, columns) array; a 1-D input of n numbers is (n, 1)."""
    array = real_array(name, value, (1, 2), largest=largest)
    array = array[:, None] if array.ndim == 1 else array
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns, not {array.shape[1]} (shape {array.shape})")
    return array


def vectors(name: str, value, columns: int | None = None) -> np.ndarray:
    """Keys, queries, features or values, (n, columns): ``rows`` whose products stay finite."""
    return rows(name, value, columns, largest=LARGEST_FEATURE)


def keys_and_values(keys, v, name: str = "xi_k") -> tuple[np.ndarray, np.ndarray]:
    """Keys (or their features) and values, one row a token each."""
    keys, v = vectors(name, keys), vectors("v", v)
    if len(keys) != len(v):
        raise ValueError(f"{name} and v must have as many rows, not {len(keys)} and {len(v)}")
    return keys, v


def increasing_edges(edges, count: int) -> np.ndarray:
    """Times (count + 1,), strictly increasing: sample k is held on [edges[k], edges[k+1])."""
    array = real_array("edges", edges, 1)
    if len(array) != count + 1:
        raise ValueError(f"edges must hold one more number than there are samples: {count + 1}, not {len(array)}")
    falls = np.flatnonzero(np.diff(array) <= 0)
    if len(falls):
        k = int(falls[0])
        raise ValueError(f"edges must increase, but edges[{k + 1}] = {array[k + 1]} follows edges[{k}] = {array[k]}")
    return array


def samples_seen(at, count: int) -> np.ndarray:
    """The numbers of samples seen, whole numbers from 1 to ``count``; None means all of these."""
    if at is None:
        return np.arange(1, count + 1)
    array = np.atleast_1d(np.asarray(at))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"at must be a list of at least one number of samples, not shape {array.shape}")
    if array.dtype.kind not in "iuf" or not np.all(array == np.floor(array)):
        raise ValueError(f"at must hold whole numbers of samples from 1 to {count}, not {at!r}")
    outside = array[(array < 1) | (array > count)]  # before the cast: int64 has no room for 1e30 or infinity
    if outside.size:
        raise ValueError(f"at must hold numbers of samples from 1 to {count}, not {outside[0]:.12g}")
    return array.astype(np.int64)
