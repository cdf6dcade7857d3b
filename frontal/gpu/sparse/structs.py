"""Structs and constants shared by the kernels of fronts and the host; see `runtime.structs`."""

from __future__ import annotations

from ...numeric.method import MAX_MULTIPLIER
from ...numeric.thresholds import THRESHOLDS
from ...symbolic.supernodes import TILE
from ..runtime.structs import Struct, StructHeader

FRONT_TILE = TILE
NO_POSITION = 0x7FFFFFFF
PART_BIT = 1 << 30
TILE_THREADS, PIVOT_COLUMNS = 128, 128
LIMIT = MAX_MULTIPLIER
SMALL_THREADS, SMALL_PANEL, SMALL_CHILDREN, MAP_BYTES = 64, 16, 4, 64
ENTRY_BITS = 6
SOLVE_WARPS, SMALL_ROWS, SMALL_LD = 8, 128, 132
SYSTEM_THREADS = 256
PROBES = 3


_D = "LDL: D(j,j), and D(j+1,j) of 2×2 pivots, zero elsewhere."
_LARGEST_ENTRY_DOC = (
    "Of columns of L, below their tiles and beyond LIMIT; with LDL of small fronts of all."
)


def _same(kind: str, *names: str) -> dict[str, str]:
    """Return fields of one type."""
    return dict.fromkeys(names, kind)


FRONTS = Struct(
    "Fronts",
    "The assembly tree.",
    {
        "start": "const int *",
        "pointer": "const long long *",
        "rows": "const int *",
        "child_pointer": "const int *",
        "children": "const int *",
        "panel": "const long long *",
        "block": "const long long *",
        "tile_row": "const int *",
        "cut_pointer": "const long long *",
        "cuts": "const int *",
    },
    {
        "start": "First pivot column of each front, and one more.",
        "pointer": "Where the update rows of each front begin, and one more.",
        "rows": "Update rows.",
        "child_pointer": "Where the children of each front begin, and one more; and they.",
        "panel": "Where each front's panel is in the factor, and its contribution block in the\n"
        "factor's memory.",
        "tile_row": "Number of each front's first tile of rows among those of all fronts.",
        "cut_pointer": "Of a child c, not of a small front: cuts[cut_pointer[c] + r] is the\n"
        "position in the parent of row r of its m, and cuts[cut_pointer[c] + m + t] the first row\n"
        "that falls in tile t.",
    },
)

# --- front_small.cu ------------------------------------------------------------------------------

SMALL_FRONT = Struct(
    "SmallFront",
    "A front and what it is assembled from, as the host lists it: how many children and entries\n"
    "of A, and which are the first.",
    {
        **_same("long long", "entry", "block", "panel"),
        **_same("int", "front", "start", "k", "m", "child", "children", "entries"),
        "spare": "long long",
    },
    {},
    align=16,
)
SMALL_CHILD = Struct(
    "SmallChild",
    "A child of one: where its contribution block lies, and its order.",
    {"block": "long long", "m": "int", "spare": "int"},
    {},
    align=16,
)
SMALL_FRONTS = Struct(
    "SmallFronts",
    "The small fronts of a tree.",
    {
        "fronts": "const SmallFront *",
        "children": "const SmallChild *",
        "maps": "const unsigned char *",
        "sources": "const unsigned *",
        "places": "const unsigned short *",
        "finished": "int *",
    },
    {
        "maps": "MAP_BYTES a child.",
        "sources": "Entries of A: places among the values, and row + 64·column, by ENTRY_BITS.",
        "finished": "1 for each front that has a contribution block.",
    },
)
OUTPUTS = Struct(
    "SmallOutputs",
    "What comes of small fronts.",
    {
        "factor": "T *",
        "pivots": "int *",
        "diagonal": "T *",
        "coupling": "T *",
        "largest": "float *",
        "outcome": "int *",
        "tiny": "real_t<T>",
    },
    {
        "diagonal": _D,
        "largest": _LARGEST_ENTRY_DOC,
        "outcome": "See report_failure; then how many pivots were replaced.",
    },
)


# --- front_tiles.cu ------------------------------------------------------------------------------

ENTRIES = Struct(
    "Entries",
    "The entries of A of each task, as places in its tile and among the values.",
    {"begin": "const unsigned *", "source": "const unsigned *", "place": "const unsigned short *"},
    {"begin": "Of each task, and one more.", "place": "row + FRONT_TILE·column."},
)
TILE_TASKS = Struct(
    "TileTasks",
    "The tasks of front_tiles.cu, and what they tell each other.",
    {
        "list": "const int4 *",
        "count": "int",
        "entries": "Entries",
        "epoch_count": "const int *",
        "need": "const int *",
        "ticket": "int *",
        "epoch": "int *",
        "over": "int *",
        "finished": "int *",
        "done": "int *",
        "upper_done": "int *",
        "sent": "T *",
        "first_sent": "const int *",
        "products": "T *",
        "product": "const long long *",
        "pivots": "int *",
        "diagonal": "T *",
        "coupling": "T *",
        "largest": "float *",
        "outcome": "int *",
        "tiny": "real_t<T>",
        "trace": "long long *",
    },
    {
        "list": "{front, i, j, epoch + PART_BIT·part}",
        "epoch_count": "Tasks of each epoch; and epochs that must be over before a front writes.",
        "epoch": "Tasks of each epoch that have ended; and epochs that are over, with all before.",
        "sent": "Factors of diagonal tiles as messages, 64×64 each; for LU two of them.",
        "first_sent": "Number of each front's first of them, and how many.",
        "products": "LDL: L·D of fronts at work, and where that of each front lies.",
        "diagonal": _D,
        "largest": _LARGEST_ENTRY_DOC,
        "outcome": "See report_failure; then how many pivots were replaced.",
        "trace": "With TRACE: when each task began, was assembled, was summed, and ended.",
    },
    parts=(ENTRIES,),
)

# --- front_forward.cu, front_backward.cu, and those of small fronts ------------------------------

SOLVE_TASK = Struct(
    "SolveTask",
    "A front that one warp takes whole, or a part of a larger one.",
    {
        **_same("long long", "panel", "rows", "pointer"),
        **_same("int", "start", "k", "m", "tile", "count", "first"),
        **_same("int", "parts", "partial", "has_children", "y"),
    },
    {
        "panel": "Places of the front's panels and update rows.",
        "rows": "Where the rows of the front begin in message_pointer.",
        "y": "Rows of y before those of this front. Those that a warp takes whole have none.",
        "tile": "Forward: tile of rows; backward: tile of pivots.",
        "count": "Tiles of update rows from `first` (backward) or `tile` (forward) on; see there.",
        "parts": "Backward: sums over update rows that others make, and the first of them.",
        "has_children": "Of fronts that a warp takes whole, and forward.",
    },
    align=16,
)
SOLVE = Struct(
    "Solve",
    "A sweep over the fronts.",
    {
        "tasks": "const SolveTask *",
        "message_pointer": "const int *",
        "slots": "const int *",
        "place": "const unsigned char *",
        "diagonal": "const T *",
        "coupling": "const T *",
        "y": "T *",
        "z": "T *",
        "x": "T *",
        "messages": "T *",
        "partial": "T *",
        "ticket": "int *",
        "count": "int",
    },
    {
        "tasks": "Of this launch; of small fronts always from the leaves up.",
        "message_pointer": "Where the messages to each row of each front begin, and end.",
        "slots": "Where the message of each update row goes.",
        "place": "LU and LDL: which row of its tile comes to each pivot row.",
        "diagonal": _D,
        "y": "Messages between the sweeps; of fronts that a warp takes whole in the place of z.",
        "z": "Right-hand sides.",
        "x": "The solution, as messages, which lie where those of update rows were.",
        "ticket": "-1 at first.",
        "count": "Of tasks.",
    },
)

TREES = Struct(
    "Trees",
    "Systems of one pattern: index arrays are those of the first one.",
    {
        "rows": "const int *",
        "up": "const int *",
        "order": "const int *",
        "begins": "const int *",
        "top": "const int *",
        "into": "const int *",
        "out": "const int *",
        "scale_into": "const double *",
        "scale_out": "const double *",
        "pointer": "const int *",
        "column": "const int *",
        "position": "const int *",
        "place": "const int *",
        "entries": "long long",
        **_same("int", "systems", "fronts", "n", "updates", "ld"),
        **_same("int", "conjugate", "conjugate_matrix", "tops"),
    },
    {
        "rows": "Update rows; and as the first sweep has them, see shares.py.",
        "order": "Fronts of each warp of a team, then those above; and where these begin and end.",
        "top": "Pivot rows of those above, and how many there are.",
        "into": "Which entry of a vector comes first, and so on, in the order of elimination.",
        "scale_into": "Of all systems; null for none.",
        "pointer": "Rows of op(A): pointers, columns in the order of elimination, and positions.",
        "place": "Where unknowns of op(A) are in the order of elimination.",
        "entries": "Values of a system.",
        "updates": "Update rows of a system.",
        "ld": "Distance of vectors in shared memory, n at least.",
        "conjugate": "Vectors, and values of A, are conjugated.",
    },
)

HEADER = StructHeader(
    "sparse/structs.cuh",
    "sparse/structs.py",
    "Structs and constants of the kernels of fronts that the host fills and knows.",
    ("common/scalar.cuh",),
    {
        "FRONT_TILE": (FRONT_TILE, "Rows and columns of a tile of a front."),
        "NO_POSITION": (NO_POSITION, "Beyond all positions of pivots; see report_failure."),
        "LIMIT": (LIMIT, "Of entries of L: 1/u of threshold pivoting."),
        "PART_BIT": (PART_BIT, "Of a task's epoch: whether it is one of U."),
        "PIVOT_COLUMNS": (PIVOT_COLUMNS, "Columns whose rows a block interchanges; whole tiles."),
        "TILE_THREADS": (TILE_THREADS, "Threads of a block of front_tiles.cu and front_pivots.cu."),
        "SMALL_THREADS": (SMALL_THREADS, "Threads of a block of front_small.cu."),
        "SMALL_PANEL": (SMALL_PANEL, "Columns of a panel of a small front."),
        "SMALL_CHILDREN": (SMALL_CHILDREN, "Children whose index lists are fetched at once."),
        "MAP_BYTES": (MAP_BYTES, "Of a child's list: positions of its rows in the parent."),
        "ENTRY_BITS": (ENTRY_BITS, "Of a row or a column of an entry of a small front."),
        "SOLVE_WARPS": (SOLVE_WARPS, "Warps of a block that solves."),
        "SMALL_ROWS": (SMALL_ROWS, "Rows of fronts that one warp solves with."),
        "SMALL_LD": (SMALL_LD, "Leading dimension of their right-hand sides in shared memory."),
        "SYSTEM_THREADS": (SYSTEM_THREADS, "Threads of a block of system.cu."),
        "PROBES": (PROBES, "Vectors of condition.cu beside a right-hand side."),
        "ACCEPTED": (
            int(THRESHOLDS.accepted),
            "Roundings that any row may err by.",
        ),
        "SYMMETRY": (int(THRESHOLDS.symmetry), "Roundings of its row by which symmetry may fail."),
        "LONG_ROW": (THRESHOLDS.long_row, "Entries from which rounding of a row counts less."),
        "TINY_ROW": (int(THRESHOLDS.tiny_row), "Of row_error.cuh: roundings for each unknown,"),
        "TINY_ROW_BOUND": (round(1 / THRESHOLDS.tiny_row_limit), "no more than 1 over so much."),
        "LEAST_PART": (round(1 / THRESHOLDS.certificate), "Of a certificate: 1 over so much."),
    },
    (
        *(FRONTS, SMALL_FRONT, SMALL_CHILD, SMALL_FRONTS, OUTPUTS),
        *(ENTRIES, TILE_TASKS, SOLVE_TASK, SOLVE, TREES),
    ),
)
