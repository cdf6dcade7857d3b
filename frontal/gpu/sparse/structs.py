"""Structs and constants shared by the kernels of fronts and the host; see `runtime.structs`."""

from __future__ import annotations

from ...numeric.acceptance import ErrorLimits
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
_SIGNS = "SIGNED: signs of the pivots, 0 for either."
_LARGEST_ENTRY_DOC = (
    "Largest entry of each column of L below its tile if above LIMIT; LDL, small: always."
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
        "pointer": "First update row of each front, and one more.",
        "rows": "Update rows.",
        "child_pointer": "First child of each front, and one more; then the children.",
        "panel": "Offset of each front's panel in the factor, and of its contribution block in\n"
        "the memory of the factor.",
        "tile_row": "Number of each front's first tile of rows among those of all fronts.",
        "cut_pointer": "Of a child c, not of a small front: cuts[cut_pointer[c] + r] is the\n"
        "position in the parent of row r of its m, and cuts[cut_pointer[c] + m + t] the first row\n"
        "that falls in tile t.",
    },
)

# --- front_small.cu ------------------------------------------------------------------------------

SMALL_FRONT = Struct(
    "SmallFront",
    "A front, with the number and the first of its children and of its entries of A.",
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
    "A child of a small front: offset and order of its contribution block, and its number.",
    {"block": "long long", "m": "int", "front": "int"},
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
        "sources": "Entries of A: positions in the values; row and column, ENTRY_BITS each.",
        "finished": "1 for each front that has a contribution block.",
    },
)
OUTPUTS = Struct(
    "SmallOutputs",
    "Output of small fronts.",
    {
        "factor": "T *",
        "pivots": "int *",
        "diagonal": "T *",
        "coupling": "T *",
        "largest": "float *",
        "signs": "const signed char *",
        "outcome": "int *",
        "tiny": "real_t<T>",
    },
    {
        "diagonal": _D,
        "largest": _LARGEST_ENTRY_DOC,
        "signs": _SIGNS,
        "outcome": "See report_failure; then the number of replaced pivots.",
    },
)


# --- front_tiles.cu ------------------------------------------------------------------------------

ENTRIES = Struct(
    "Entries",
    "The entries of A of each task: positions in its tile and in the values.",
    {"begin": "const unsigned *", "source": "const unsigned *", "place": "const unsigned short *"},
    {"begin": "Of each task, and one more.", "place": "row + FRONT_TILE·column."},
)
TILE_TASKS = Struct(
    "TileTasks",
    "The tasks of front_tiles.cu, and their messages.",
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
        "signs": "const signed char *",
        "outcome": "int *",
        "tiny": "real_t<T>",
        "trace": "long long *",
    },
    {
        "list": "{front, i, j, epoch + PART_BIT·part}",
        "epoch_count": "Tasks of each epoch; then the epochs that end before a front may write.",
        "epoch": "Tasks of each epoch that have ended; then the number of epochs that are over.",
        "sent": "Factors of diagonal tiles as messages, 64×64 each; for LU two of them.",
        "first_sent": "First message of each front, and their number.",
        "products": "LDL: L·D of fronts being factorized; `product` has the offset of each front.",
        "diagonal": _D,
        "largest": _LARGEST_ENTRY_DOC,
        "signs": _SIGNS,
        "outcome": "See report_failure; then the number of replaced pivots.",
        "trace": "With TRACE: times at which a task began, was assembled, was summed, and ended.",
    },
    parts=(ENTRIES,),
)

# --- front_forward.cu, front_backward.cu, and those of small fronts ------------------------------

SOLVE_TASK = Struct(
    "SolveTask",
    "A front that one warp solves, or a part of a larger front.",
    {
        **_same("long long", "panel", "rows", "pointer"),
        **_same("int", "start", "k", "m", "tile", "count", "first"),
        **_same("int", "parts", "partial", "has_children", "y"),
    },
    {
        "panel": "Offsets of the front's panels and update rows.",
        "rows": "First row of the front in message_pointer.",
        "y": "Rows of y before this front; a front of one warp has none.",
        "tile": "Forward: tile of rows; backward: tile of pivots.",
        "count": "Tiles of update rows, starting at `first` (backward) or `tile` (forward).",
        "parts": "Backward: number of sums over update rows by other tasks, and the first sum.",
        "has_children": "Only forward, for a front of one warp.",
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
        "tasks": "Tasks of this launch; those of small fronts from the leaves up.",
        "message_pointer": "First message to each row of each front, and one more.",
        "slots": "Slot of the message of each update row.",
        "place": "LU and LDL: row of the tile that is interchanged into each pivot row.",
        "diagonal": _D,
        "y": "Messages between the sweeps; fronts of one warp use z.",
        "z": "Right-hand sides.",
        "x": "The solution as messages, in the memory of those of update rows.",
        "ticket": "Initially -1.",
        "count": "Number of tasks.",
    },
)

TREES = Struct(
    "Trees",
    "Systems of one pattern; the index arrays are of the first system.",
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
        "rows": "Update rows; `up` has them for the first sweep, see tasks/warp_partition.py.",
        "order": "Fronts of each warp of a team, then the fronts above; `begins` bounds each list.",
        "top": "Pivot rows of the fronts above; `tops` is their number.",
        "into": "Entry of a vector at each position of the elimination order.",
        "scale_into": "Scaling of all systems; null without scaling.",
        "pointer": "Rows of op(A): pointers, columns in the order of elimination, and positions.",
        "place": "Position of each unknown of op(A) in the elimination order.",
        "entries": "Values per system.",
        "updates": "Update rows per system.",
        "ld": "Distance of vectors in shared memory, at least n.",
        "conjugate": "Whether vectors (and, by conjugate_matrix, values of A) are conjugated.",
    },
)

FACTOR_LIMITS = Struct(
    "FactorLimits",
    "Limits of factors of a batch, see batch_checks.cu.",
    _same("double", "asymmetry", "pivot_ratio", "unstable_columns", "growth"),
    {"asymmetry": "A number between 0 (symmetric values) and 1 (others)."},
)
SOLUTION_LIMITS = Struct(
    "SolutionLimits",
    "`ErrorLimits` of numeric/acceptance.py, and the largest products of errors and condition\n"
    "numbers without a warning: of the factor, and of a solution itself.",
    _same("double", *ErrorLimits._fields, "silent", "warned"),
    {},
)

HEADER = StructHeader(
    "sparse/structs.cuh",
    "sparse/structs.py",
    "Structs and constants that kernels of fronts share with the host.",
    ("common/scalar.cuh",),
    {
        "FRONT_TILE": (FRONT_TILE, "Rows and columns of a tile of a front."),
        "NO_POSITION": (NO_POSITION, "Larger than any position of a pivot; see report_failure."),
        "LIMIT": (LIMIT, "Largest entry of L: 1/u of threshold pivoting."),
        "PART_BIT": (PART_BIT, "Bit of a task's epoch: the task is of U."),
        "PIVOT_COLUMNS": (
            PIVOT_COLUMNS,
            "Columns per block that interchanges rows.",
        ),
        "TILE_THREADS": (TILE_THREADS, "Threads of a block of front_tiles.cu and front_pivots.cu."),
        "SMALL_THREADS": (SMALL_THREADS, "Threads of a block of front_small.cu."),
        "SMALL_PANEL": (SMALL_PANEL, "Columns of a panel of a small front."),
        "SMALL_CHILDREN": (SMALL_CHILDREN, "Children whose index lists are fetched together."),
        "MAP_BYTES": (MAP_BYTES, "Bytes of a child's list of row positions in the parent."),
        "ENTRY_BITS": (
            ENTRY_BITS,
            "Bits of a row and of a column in a small front.",
        ),
        "SOLVE_WARPS": (SOLVE_WARPS, "Warps of a block that solves."),
        "SMALL_ROWS": (SMALL_ROWS, "Most rows of a front that one warp solves."),
        "SMALL_LD": (SMALL_LD, "Leading dimension of their right-hand sides in shared memory."),
        "SYSTEM_THREADS": (SYSTEM_THREADS, "Threads of a block of system.cu."),
        "PROBES": (PROBES, "Probes of condition.cu per right-hand side."),
        "ACCEPTED": (
            int(THRESHOLDS.accepted),
            "Largest accepted backward error of a row, in roundings.",
        ),
        "SYMMETRY": (
            int(THRESHOLDS.symmetry),
            "Largest accepted asymmetry, in roundings.",
        ),
        "LONG_ROW": (THRESHOLDS.long_row, "Entries of a row from which its rounding counts less."),
        "TINY_ROW": (int(THRESHOLDS.tiny_row), "Of row_error.cuh: roundings per unknown,"),
        "TINY_ROW_BOUND": (round(1 / THRESHOLDS.tiny_row_limit), "at most the inverse of this."),
        "LEAST_PART": (
            round(1 / THRESHOLDS.certificate),
            "Inverse of a certificate's fraction.",
        ),
    },
    (
        *(FRONTS, SMALL_FRONT, SMALL_CHILD, SMALL_FRONTS, OUTPUTS),
        *(ENTRIES, TILE_TASKS, SOLVE_TASK, SOLVE, TREES, FACTOR_LIMITS, SOLUTION_LIMITS),
    ),
)
