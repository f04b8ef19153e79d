/* Several caches on one directory: "Several processes" of Documentation/Concurrency.md, for one key, as a model through which Spin walks
   all orders of events. README.md, beside this file, says how to read it and how to run it. */

#ifndef CACHES
#define CACHES 2
#endif
/* What a cache may do: a sum of these numbers. */
#define DO_STORE 1              /* a load that asks, and stores the answer */
#define DO_LOOKUP 2
#define DO_REMOVE 4             /* a removal of a key */
#define DO_UPDATE 8             /* by a 304, a pin or a tag */
#define DO_GROUP 16             /* a removal by tag, host, prefix or date: the others hear "everything" */
#define DO_CLEAR 32             /* of everything, by renaming the folder */
#define DO_LEAVE 64             /* the cache closes */

/* The rules. Each walk may leave one out. The names are those of Concurrency.md. */
#define FIRST_ROW 1
#define SECOND_ROW 2
#define LOOK_AFTER_A_WRITE 3
#define LOOK_BEFORE_ASKING 4
#define STORING_ROW 5
#define STORED_ROW 6
#define PROBING 7
#define WITHDRAWAL_IS_ANNOUNCED 8
#define OWN_REMOVALS 9
#define STILL_THERE 10
#define RECORD_LOCK 11
#define GENERATION 12
#define IDENTITY 13
#define HOLDING 14
#define COMPARING 15
#define READING_BEFORE_DELETING 16
#define UNTOLD 17
#define UNTOLD_UNDER_WAY 18
#define ANNOUNCED_GO 19
#define ROW_AFTER_THEM 20
#define FIRST_ROW_ON 21
#define NOTICED_ROW 22
#define COMING_AGAIN 23
#define TELLING_AGAIN 24
#define REST_OF_A_FULL_FILE 25
#define ONE_AT_A_TIME 26
#define NEW_FILE_IS_EVERYTHING 27
#define LOCK_IS_GONE 28
#define UNTOLD_OF_TWO_OWNERS 29
#define WITHDRAWAL 30
#define NO_SECOND_LIFE 31
#define READING_THOUGH_FULL 32
#define ROW_BEFORE_THEM 33

/* A walk gets its sizes when it starts, as NAME=VALUE in front of `./pan`, so that the model is compiled once. */
c_decl {
  static struct { int first, second, third, times, start, deaths, deletions, cuts, unlocks, fulls, limit, strict, leftOut; } given;
  static int setting(const char *name, int value) { char *text = getenv(name); return text ? atoi(text) : value; }
  static void __attribute__((constructor)) settings(void) {
    given.first = setting("FIRST", 0);          /* what each cache may do, */
    given.second = setting("SECOND", 0);
    given.third = setting("THIRD", 0);
    given.times = setting("TIMES", 1);          /* and how often */
    given.start = setting("START", 0);          /* who is there: 0 nobody, 1 the first one, alone, 2 all, 3 all, with nothing in memory */
    given.deaths = setting("DIE", 0);           /* so many caches die, at any step; */
    given.deletions = setting("DELETE", 0);     /* so many times somebody deletes `changes`, */
    given.cuts = setting("CUT", 0);             /* or empties it, */
    given.unlocks = setting("UNLOCK", 0);       /* or deletes `lock` */
    given.fulls = setting("FULL", 0);           /* so many times the disk is full for a while */
    given.limit = setting("LIMIT", 99);         /* so many rows fill the file */
    given.strict = setting("STRICT", 0);        /* nothing that was removed is served from disk either */
    given.leftOut = setting("WITHOUT", 0);      /* the number of a rule */
  }
}
byte without = 0;
#define has(rule) (without != rule)

#define ROWS 16
#define SLOTS 3
#define FILES (CACHES + 2)
#define bit(c) (1 << c)
#define max(a, b) (a > b -> a : b)

/* ---- The directory ---- */
/* A record is the epoch in which its answer was asked for; each removal begins an epoch. 0 is a free slot. */
#define UNFINISHED 16           /* + its writer, who holds its lock */
#define LOOSE 32                /* + its writer, who has no lock on it, since it was alone */
byte slot[SLOTS];
byte path = 0;                  /* the file `changes`; 0: there is none */
byte row[(CACHES + 2) * ROWS];
byte length[CACHES + 3];
byte holders[CACHES + 3];       /* which caches hold a shared lock on it, a bit each */
byte deleting = 0;              /* the file on which the owner has the exclusive lock */
byte replacing = 0;             /* the cache that has the lock of the directory, + 1 */
byte owner = 0;                 /* the cache that has the lock on `lock`, + 1 */
bool isFull = false;            /* the disk: no row can be written */
bool wasOwned = false;          /* `lock` has a length */
/* Rows */
#define STORING 1
#define STORED 2
#define REMOVED 3
#define EVERYTHING 4
#define NOTICED 5
#define kindOf(f, i) (row[(f - 1) * ROWS + i] & 7)
#define writerOf(f, i) (row[(f - 1) * ROWS + i] >> 3)

/* ---- The caches ---- */
byte memory[CACHES];            /* a record; 0: none */
byte reading[CACHES];           /* 1: a lookup reads the disk; 2: memory has changed since (MemoryCache.generation) */
byte file[CACHES];              /* the open file `changes`; 0: none */
byte opening[CACHES];           /* the one that it has opened, and not joined yet */
byte position[CACHES];          /* how far the file was read */
bool came[CACHES];
bool owns[CACHES];
bool alone[CACHES];
bool untold[CACHES];
bool removing[CACHES];          /* a removal of this cache is under way */
bool current[CACHES];           /* the index of the owner: it knows the folder, */
byte known[CACHES];             /* these slots, a bit each, */
bool doubted[CACHES];           /* the key is to be examined, */
byte shared[CACHES];            /* and so many guests are writing it */
byte asked[CACHES];             /* 1: a store or update has asked; 2: a removal was heard since (RemovalCounters) */
byte own[CACHES];               /* the last removal by this cache (RecentRemovals) */
byte request[CACHES];           /* what a thread asks `Membership` for; 0: nothing */
byte wanted[CACHES];            /* the row that the request is to append */
#define LOOK 1                  /* look in any case, */
#define COME 2                  /* or if there is no open file */
#define BEGIN 4                 /* a removal begins, */
#define END 8                   /* or ends */
#define LEAVE 16
#define SAY 32                  /* only append the row */
bool failed[CACHES];            /* the row could not be written */
bool dead[CACHES];
byte at[CACHES];               /* the step at which `Membership` is */

/* ---- What only the promises ask ---- */
byte epoch = 1;
byte pending[CACHES];           /* the record that this cache has written, and about which it has not looked yet */
byte returned = 0;              /* the last removal that returned, */
byte told = 0;                  /* that returned and was told, */
byte ownReturned[CACHES];       /* and that this cache made */
byte excused = 0;               /* left by a writer that died between the end of its record and its look */
byte mark[CACHES];              /* the rows that there were when a store asked, if no removal was under way */
bool ended[CACHES];
bool over = false;

#define whole(s) (slot[s] > 0 && slot[s] < UNFINISHED)
#define isExact(c) (owns[c] && current[c] && !doubted[c] && shared[c] == 0)

inline forget(c) { memory[c] = 0; reading[c] = (reading[c] > 0 -> 2 : 0) }
inline hit(c) { asked[c] = (asked[c] > 0 -> 2 : 0) }
#define isHit(c) (asked[c] == 2)

/* The whole records. Torn ones go: they are unfinished, and nobody holds their lock. */
inline examine(c, mask) {
  mask = 0; x = 0;
  do
  :: x < SLOTS ->
     if
     :: whole(x) -> mask = mask | bit(x)
     :: slot[x] >= LOOSE && slot[x] != LOOSE + c -> slot[x] = 0
     :: slot[x] >= UNFINISHED && slot[x] < LOOSE && dead[slot[x] - UNFINISHED] -> slot[x] = 0
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}
/* Where this cache takes the records of the key to be. */
inline locate(c, mask) { if :: isExact(c) -> mask = known[c] :: else -> examine(c, mask) fi }
inline unlink(c, mask) {
  x = 0;
  do :: x < SLOTS -> if :: mask & bit(x) -> slot[x] = 0 :: else fi; x++ :: else -> break od;
  x = 0; known[c] = known[c] & (255 - mask)
}

inline heed(c, kind) {
  if
  :: kind == STORING -> if :: owns[c] && shared[c] < 3 && has(PROBING) -> shared[c]++ :: else fi
  :: kind == STORED ->
     if :: owns[c] -> doubted[c] = true; shared[c] = (shared[c] > 0 -> shared[c] - 1 : 0) :: else fi;
     forget(c)
  :: kind == REMOVED -> hit(c); doubted[c] = owns[c]; forget(c)
  :: kind == EVERYTHING -> hit(c); current[c] = false; known[c] = 0; forget(c)
  :: else
  fi
}
/* Applies the rows of the others from a position on. */
inline readRows(c, f, from) {
  x = from;
  if :: x > length[f] -> heed(c, EVERYTHING) :: else fi;
  do
  :: x < length[f] ->
     if
     :: writerOf(f, x) != c ->
        k = kindOf(f, x); heed(c, k);
        /* What was removed before a store asked is not taken for a removal of its answer. */
        assert(from == 0 || k != REMOVED || x >= mark[c] || asked[c] == 0)
     :: else
     fi;
     x++
  :: else -> break
  od;
  position[c] = length[f]; x = 0; k = 0
}
/* Whether any row of another names the key. */
inline isAnnounced(f, yes) {
  x = 0; yes = false;
  do :: x < length[f] -> yes = yes || writerOf(f, x) != c && kindOf(f, x) <= REMOVED; x++ :: else -> break od;
  x = 0
}
inline append(c, f, kind) {
  assert(length[f] < ROWS); assert(!alone[c]);                /* P5: who is alone writes no row */
  row[(f - 1) * ROWS + length[f]] = kind + (c << 3); length[f]++
}
#if CACHES == 2
#define isOpen(f) (file[0] == f || file[1] == f || opening[0] == f || opening[1] == f)
#else
#define isOpen(f) (file[0] == f || file[1] == f || file[2] == f || opening[0] == f || opening[1] == f || opening[2] == f)
#endif
/* A new file. The number of one that is open is not used again. */
inline makeFile(f) {
  f = 1;
  do :: f == path || isOpen(f) -> f++ :: else -> break od;
  assert(f <= FILES);
  do :: length[f] > 0 -> length[f]--; row[(f - 1) * ROWS + length[f]] = 0 :: else -> break od;
  holders[f] = 0
}
inline isNoticed(f, yes) {
  x = 0; yes = false;
  do :: x < length[f] -> yes = yes || kindOf(f, x) == NOTICED; x++ :: else -> break od;
  x = 0
}
inline close(c) {
  if
  :: file[c] != 0 ->
     x = file[c]; holders[x] = holders[x] & (255 - bit(c)); file[c] = 0;
     do :: path != x && !isOpen(x) && length[x] > 0 -> length[x]--; row[(x - 1) * ROWS + length[x]] = 0 :: else -> break od;
     x = 0
  :: else
  fi;
  position[c] = 0
}
inline becomeOwner(c) {
  owner = c + 1; owns[c] = true; current[c] = false; known[c] = 0; doubted[c] = false; shared[c] = 0;
  isAfter = wasOwned; wasOwned = true
}

#define isOther(c) (path != file[c] && has(IDENTITY))
#define hasNews(c) \
  (file[c] != 0 && (isOther(c) || length[file[c]] != position[c] || untold[c] && !isFull) || \
   alone[c] && (path != 0 || untold[c]) || came[c] && file[c] == 0 && !alone[c])
#define mayElect(c) (came[c] && !owns[c] && owner == 0)
#define mayEnd(c) (owns[c] && file[c] != 0 && path == file[c] && holders[file[c]] == 0 && replacing == 0)
#define mayList(c) (owns[c] && (!current[c] || doubted[c]))
#define hasLostLock(c) (owns[c] && owner != c + 1)
#define mustLook(c) (request[c] & LOOK || (request[c] & COME) && file[c] == 0)

/* The steps of `Membership`. */
#define IDLE 0
#define COMING 1
#define OPENED 2
#define HELD 3
#define APPEARING 4
#define APPENDED 5
#define UNTOLD_FOUND 6
#define UNTOLD_TOLD 7
#define NOTICING 8
#define HEEDING 9
#define TELLING 10
#define TOLD 11
#define FULL 12
#define MADE 13
#define RENAMED 14
#define ELECTED 15
#define LOCKED 16
#define READ 17
#define UNTOLD_BEGUN 18
/* A look is the one of a request, or of a lookup or pass of another thread. */
#define looks (at[c] == IDLE && (request[c] != 0 && mustLook(c) || request[c] == 0 && hasNews(c)))

inline part(c) { missed = missed || came[c]; close(c); alone[c] = false; at[c] = COMING }
inline finish(c) {
  if
  :: serves ->
     if :: request[c] & (BEGIN | END) && file[c] == 0 -> untold[c] = true :: else fi;
     if
     :: request[c] & LEAVE ->
        close(c); alone[c] = false; forget(c); came[c] = false; owner = (owner == c + 1 -> 0 : owner); owns[c] = false;
        current[c] = false; known[c] = 0; doubted[c] = false; shared[c] = 0
     :: else
     fi;
     request[c] = 0; wanted[c] = 0; serves = false
  :: else
  fi;
  at[c] = IDLE; f = 0; missed = false; isAfter = false; mayAllBe = false; announced = false
}

/* The lock `Membership.state`, with all that is done under it: one request, look or pass at a time. */
proctype Membership(byte c) {
  byte f, x, k; bool announced, missed, isAfter, mayAllBe, serves;
  do
  /* Looking */
  :: d_step { looks && file[c] != 0 && isOther(c) -> serves = request[c] != 0; part(c) }
  :: d_step { looks && file[c] != 0 && !isOther(c) ->
        serves = request[c] != 0; f = file[c]; readRows(c, f, position[c]); at[c] = (untold[c] -> UNTOLD_BEGUN : HEEDING) }
  :: d_step { looks && alone[c] && path == 0 -> serves = request[c] != 0; untold[c] = untold[c] && removing[c] && has(UNTOLD_UNDER_WAY); at[c] = HEEDING }
  :: d_step { looks && alone[c] && path != 0 -> serves = request[c] != 0; at[c] = APPEARING }
  :: d_step { looks && file[c] == 0 && !alone[c] -> serves = request[c] != 0; part(c) }

  /* Coming */
  :: d_step { at[c] == COMING && (owns[c] || owner == 0) ->
        came[c] = true; if :: owner == 0 && !owns[c] -> becomeOwner(c) :: else fi;
        if :: path == 0 -> alone[c] = true; at[c] = HEEDING :: else -> at[c] = APPEARING fi }
  :: d_step { at[c] == COMING && !owns[c] && owner != 0 ->
        came[c] = true; if :: path == 0 -> makeFile(f); path = f :: else -> f = path fi;
        opening[c] = f; position[c] = length[f]; at[c] = OPENED }
  :: d_step { at[c] == OPENED && deleting == f && has(HOLDING) -> opening[c] = 0; at[c] = COMING }
  :: d_step { at[c] == OPENED && (deleting != f || !has(HOLDING)) ->
        if :: has(HOLDING) -> holders[f] = holders[f] | bit(c) :: else fi; at[c] = HELD }
  :: d_step { at[c] == HELD && path != f && has(COMPARING) -> file[c] = f; opening[c] = 0; close(c); at[c] = COMING }
  :: d_step { at[c] == HELD && (path == f || !has(COMPARING)) ->
        file[c] = f; opening[c] = 0; at[c] = (untold[c] -> UNTOLD_BEGUN : HEEDING) }
  :: d_step { at[c] == APPEARING ->
        if :: path == 0 -> makeFile(f); path = f :: else -> f = path fi;
        isNoticed(f, mayAllBe); mayAllBe = untold[c] && has(UNTOLD) || isAfter && !mayAllBe && has(NOTICED_ROW);
        alone[c] = false; opening[c] = f; if :: !isFull -> append(c, f, (mayAllBe -> EVERYTHING : NOTICED)) :: else fi; at[c] = APPENDED }
  :: d_step { at[c] == APPENDED ->
        file[c] = f; opening[c] = 0; if :: has(FIRST_ROW_ON) -> readRows(c, f, 0) :: else -> position[c] = length[f] fi;
        at[c] = (untold[c] -> UNTOLD_BEGUN : (mayAllBe -> NOTICING : HEEDING)) }

  /* Telling what was untold: a row, what was announced goes, and the row again */
  :: d_step { at[c] == UNTOLD_BEGUN ->
        f = file[c]; if :: has(ROW_BEFORE_THEM) && has(UNTOLD) && !isFull -> append(c, f, EVERYTHING) :: else fi;
        readRows(c, f, position[c]); isAnnounced(f, announced); at[c] = (isFull -> HEEDING : UNTOLD_FOUND) }
  :: d_step { at[c] == UNTOLD_FOUND && announced && has(ANNOUNCED_GO) -> examine(c, k); unlink(c, k); k = 0; announced = false }
  :: d_step { at[c] == UNTOLD_FOUND && !(announced && has(ANNOUNCED_GO)) ->
        if :: has(ROW_AFTER_THEM) && has(UNTOLD) && !isFull -> append(c, file[c], EVERYTHING) :: else fi; at[c] = UNTOLD_TOLD }
  :: d_step { at[c] == UNTOLD_TOLD && isOther(c) -> part(c) }
  :: d_step { at[c] == UNTOLD_TOLD && !isOther(c) ->
        untold[c] = isFull; f = file[c]; readRows(c, f, position[c]); at[c] = (mayAllBe -> NOTICING : HEEDING) }
  :: d_step { at[c] == NOTICING -> f = file[c]; if :: !isFull && !untold[c] -> append(c, f, NOTICED) :: else fi; readRows(c, f, position[c]); at[c] = HEEDING }
  :: d_step { at[c] == HEEDING ->
        if :: missed && has(COMING_AGAIN) -> heed(c, EVERYTHING) :: else fi;
        missed = false; if :: serves && wanted[c] != 0 && file[c] != 0 -> at[c] = TELLING :: else -> finish(c) fi }

  /* A row */
  :: d_step { at[c] == IDLE && request[c] != 0 && !mustLook(c) && (wanted[c] == 0 || file[c] == 0) -> serves = true; finish(c) }
  :: d_step { (at[c] == TELLING || at[c] == IDLE && request[c] != 0 && !mustLook(c)) && wanted[c] != 0 && file[c] != 0 ->
        serves = true; f = file[c]; mayAllBe = isFull; if :: !isFull -> append(c, f, wanted[c]) :: else fi; at[c] = TOLD }
  :: d_step { at[c] == TOLD && path != f && has(TELLING_AGAIN) -> part(c) }
  :: d_step { at[c] == TOLD && (path == f || !has(TELLING_AGAIN)) ->
        if :: !mayAllBe || has(READING_THOUGH_FULL) -> readRows(c, f, position[c]) :: else fi;
        if :: mayAllBe && request[c] & (BEGIN | END) -> untold[c] = true :: else fi;
        failed[c] = mayAllBe && wanted[c] == STORING;
        if :: length[f] < c_expr { given.limit } -> finish(c) :: else -> at[c] = FULL fi }

  /* A full file is replaced. */
  :: d_step { at[c] == FULL ->
        if
        :: replacing == 0 && path == f -> replacing = (has(ONE_AT_A_TIME) -> c + 1 : 0); at[c] = MADE
        :: else -> finish(c)
        fi }
  :: d_step { at[c] == MADE ->
        makeFile(k); opening[c] = k; if :: !owns[c] -> holders[k] = holders[k] | bit(c) :: else fi;
        if :: has(NEW_FILE_IS_EVERYTHING) -> append(c, k, EVERYTHING) :: else fi;
        path = k; k = 0; at[c] = RENAMED }
  :: d_step { at[c] == RENAMED ->
        if :: has(REST_OF_A_FULL_FILE) -> readRows(c, f, position[c]) :: else fi;
        close(c); file[c] = opening[c]; opening[c] = 0; replacing = (replacing == c + 1 -> 0 : replacing);
        finish(c) }

  /* Passes, and the look at `lock` */
  :: d_step { at[c] == IDLE && request[c] == 0 && mayElect(c) ->
        becomeOwner(c);
        if
        :: file[c] == 0 -> untold[c] = untold[c] || isAfter; finish(c)
        :: else ->
           f = file[c]; holders[f] = holders[f] & (255 - bit(c));
           isNoticed(f, mayAllBe); mayAllBe = !mayAllBe && has(NOTICED_ROW); readRows(c, f, 0); at[c] = ELECTED
        fi }
  :: d_step { at[c] == ELECTED && isOther(c) -> part(c) }
  :: d_step { at[c] == ELECTED && !isOther(c) ->
        if :: mayAllBe && !isFull -> append(c, file[c], EVERYTHING); heed(c, EVERYTHING); at[c] = NOTICING :: else -> at[c] = HEEDING fi }
  :: d_step { at[c] == IDLE && request[c] == 0 && mayEnd(c) -> f = file[c]; deleting = f; replacing = c + 1; at[c] = LOCKED }
  :: d_step { at[c] == LOCKED -> if :: has(READING_BEFORE_DELETING) -> readRows(c, f, position[c]) :: else fi; at[c] = READ }
  :: d_step { at[c] == READ ->
        path = (path == f -> 0 : path); deleting = 0; replacing = 0; close(c); alone[c] = true; untold[c] = removing[c];
        doubted[c] = doubted[c] || shared[c] > 0; shared[c] = 0; finish(c) }
  :: d_step { at[c] == IDLE && request[c] == 0 && mayList(c) -> examine(c, known[c]); current[c] = true; doubted[c] = false }
  :: d_step { at[c] == IDLE && request[c] == 0 && hasLostLock(c) && has(LOCK_IS_GONE) ->
        close(c); alone[c] = false; untold[c] = has(UNTOLD_OF_TWO_OWNERS); owns[c] = false;
        current[c] = false; known[c] = 0; doubted[c] = false; shared[c] = 0 }
  od unless { dead[c] || over }
}

/* ---- The threads of one cache that change something: one after the other, since they hold the stripe of the key ---- */
#define isFree (request[c] == 0)
#define isLost (!owns[c] && (file[c] == 0 || failed[c]))                     /* a guest whose owner could not be told writes nothing */
inline ask(flags, kind) { request[c] = flags; wanted[c] = kind }
inline askIfShared() { if :: !alone[c] -> ask(LOOK, 0) :: else fi }
/* A guest tells the owner before it writes. */
inline announce(flags) {
  if
  :: !owns[c] && has(STORING_ROW) -> ask(flags, STORING)
  :: !owns[c] && !has(STORING_ROW) -> ask(COME, 0)
  :: else
  fi
}
inline tellStored() {
  if
  :: has(LOOK_AFTER_A_WRITE) && has(STORED_ROW) -> ask(COME, STORED)
  :: has(LOOK_AFTER_A_WRITE) && !has(STORED_ROW) -> ask(LOOK, 0)
  :: else
  fi
}

proctype Cache(byte c; byte may) {
  byte n = c_expr { given.times }, v, s, mask, x; bool kept, isUpdate, isLocked;
  {
  skip;
next:
  if
  :: d_step { n > 0 && (may & DO_STORE) ->
        n--; mark[c] = (file[c] != 0 && path == file[c] && (told == epoch || epoch == 1) -> length[file[c]] : 0);
        if :: has(LOOK_BEFORE_ASKING) -> askIfShared() :: else fi };
     goto store
  :: d_step { n > 0 && (may & DO_LOOKUP) -> n--; if :: !came[c] -> ask(LOOK, 0) :: else fi }; goto lookup
  :: d_step { n > 0 && (may & DO_UPDATE) -> n--; isUpdate = true; if :: !came[c] -> ask(LOOK, 0) :: else fi }; goto lookup
  :: d_step { n > 0 && (may & DO_REMOVE) -> n--; s = REMOVED }; goto remove
  :: d_step { n > 0 && (may & DO_GROUP) -> n--; s = EVERYTHING }; goto remove
  :: d_step { n > 0 && (may & DO_CLEAR) -> n--; s = EVERYTHING; mask = 1 }; goto remove
  :: d_step { (may & DO_LEAVE) && came[c] -> ask(LOOK | LEAVE, 0) }; isFree -> goto end
  :: goto end
  fi;

  /* ---- A load asks, and its answer is stored ---- */
store:
  if :: d_step { isFree -> asked[c] = 1; v = epoch; announce(COME) } fi;
write:
  if
  :: isFree && came[c] && isLost -> goto done
  :: d_step { isFree && !(came[c] && isLost) ->               /* a slot */
        locate(c, mask); s = 0;
        do :: s < SLOTS && slot[s] != 0 -> s++ :: else -> break od;
        kept = s < SLOTS; isLocked = kept && !alone[c];
        if
        :: !kept -> s = 0
        :: kept && (alone[c] || !has(RECORD_LOCK)) -> slot[s] = LOOSE + c
        :: else -> slot[s] = UNFINISHED + c
        fi }
  fi;
  d_step {                                                    /* its bytes: from now on it is whole */
    /* Nobody takes a record that is locked for a torn one. */
    assert(!isLocked || slot[s] == UNFINISHED + c || c_expr { (given.first | given.second | given.third) & 32 });
    kept = kept && (slot[s] == LOOSE + c || slot[s] == UNFINISHED + c); isLocked = false;
    if
    :: kept ->
       slot[s] = v; pending[c] = v;
       /* Of two owners each takes itself to be alone. */
       x = 0; do :: x < CACHES -> if :: hasLostLock(x) -> excused = max(excused, v) :: else fi; x++ :: else -> break od; x = 0
    :: else
    fi };
  d_step {                                                    /* its row; of several records the newest one stays */
    if :: kept && !alone[c] && slot[s] != v && has(STILL_THERE) -> kept = false; doubted[c] = owns[c] :: else fi;
    if :: kept && owns[c] && current[c] -> known[c] = known[c] | bit(s) :: else fi;
    x = 0;
    do
    :: kept && x < SLOTS ->
       if
       :: x != s && (mask & bit(x)) && whole(x) && slot[x] <= v -> slot[x] = 0; known[c] = known[c] & (255 - bit(x))
       :: x != s && (mask & bit(x)) && whole(x) && slot[x] > v ->
          kept = false; if :: slot[s] == v -> slot[s] = 0 :: else fi; known[c] = known[c] & (255 - bit(s))
       :: else
       fi;
       x++
    :: else -> break
    od;
    x = 0; mask = 0; tellStored() };
  if :: d_step { isFree -> memory[c] = (kept -> (isUpdate && memory[c] == 0 -> 0 : v) : 0) } fi;
settled:
  if
  :: d_step { isFree && (!isHit(c) || !has(WITHDRAWAL)) ->
        /* P2: what was removed meanwhile is not on disk when a store returns. */
        pending[c] = 0; assert(!kept || slot[s] != v || v >= told || v <= excused) };
     goto done
  :: d_step { isFree && isHit(c) && has(WITHDRAWAL) -> if :: has(WITHDRAWAL_IS_ANNOUNCED) -> announce(SAY) :: else fi }
  fi;
  d_step { isFree -> ask(LOOK | BEGIN, 0); removing[c] = true };
  d_step { isFree -> locate(c, mask); unlink(c, mask); removing[c] = false; ask(END, 0); wanted[c] = (has(WITHDRAWAL_IS_ANNOUNCED) -> STORED : 0) };
  d_step { isFree -> forget(c); pending[c] = 0 };
  goto done;

  /* ---- A lookup, and what a 304, a pin or a tag does with what was found ---- */
lookup:
  if
  :: d_step { isFree && memory[c] != 0 -> v = memory[c]; assert(v >= ownReturned[c]) };   /* P3: nobody serves what it removed itself */
     if :: isUpdate -> goto update :: else -> goto done fi
  :: d_step { isFree && memory[c] == 0 -> reading[c] = 1 }
  fi;
  d_step {
    locate(c, mask);
    do :: x < SLOTS -> if :: (mask & bit(x)) && whole(x) -> v = max(v, slot[x]) :: else fi; x++ :: else -> break od;
    x = 0 };
  if
  :: v == 0 -> goto done
  :: d_step { v != 0 && !alone[c] && v < own[c] && has(OWN_REMOVALS) -> announce(SAY) };
     d_step { isFree -> ask(LOOK | BEGIN, 0); removing[c] = true };
     d_step { isFree ->
       locate(c, mask); x = 0;
       do
       :: x < SLOTS -> if :: (mask & bit(x)) && slot[x] == v -> slot[x] = 0; known[c] = known[c] & (255 - bit(x)) :: else fi; x++
       :: else -> break
       od;
       x = 0; removing[c] = false; ask(END, STORED) };
     isFree -> goto done
  :: d_step { v != 0 && !(!alone[c] && v < own[c] && has(OWN_REMOVALS)) ->
        assert(v >= ownReturned[c]);                          /* P3 */
        if :: c_expr { given.strict } -> assert(v >= told) :: else fi;
        if :: reading[c] == 2 && has(GENERATION) :: else -> memory[c] = v fi; reading[c] = 0 };
     if :: isUpdate :: else -> goto done fi
  fi;
update:
  if :: d_step { true -> askIfShared() } fi;
  d_step { isFree -> asked[c] = 1; askIfShared() };           /* the request is sent, and a 304 comes */
  if :: isFree && isHit(c) -> goto done :: d_step { isFree && !isHit(c) -> announce(COME) } fi;
  if
  :: isFree && isLost -> goto done
  :: d_step { isFree && !isLost ->
        locate(c, mask); s = 0;
        do :: s < SLOTS && !((mask & bit(s)) && slot[s] == v) -> s++ :: else -> break od;
        mask = 0; kept = s == SLOTS && memory[c] == v; if :: !alone[c] -> ask(COME, STORED) :: else fi }
  fi;
  if
  :: d_step { isFree && s < SLOTS -> kept = false }; goto settled                      /* it has a new tail */
  :: d_step { isFree && s == SLOTS && (!kept || isHit(c)) -> forget(c) }; goto done
  :: d_step { isFree && s == SLOTS && kept && !isHit(c) && has(NO_SECOND_LIFE) -> kept = false }; goto done   /* memory goes on having it */
  :: d_step { isFree && s == SLOTS && kept && !isHit(c) && !has(NO_SECOND_LIFE) -> s = 0; kept = false; ask(LOOK, 0) }
  fi;
  if                                                          /* it is gone from disk: memory stores it again */
  :: d_step { isFree && isHit(c) -> forget(c) }; goto done
  :: d_step { isFree && !isHit(c) -> announce(COME) }; goto write
  fi;

  /* ---- A removal ---- */
remove:
  if :: d_step { true ->
       epoch++; v = epoch; own[c] = v; kept = mask != 0; removing[c] = true; ask(BEGIN | COME, 0); wanted[c] = (has(FIRST_ROW) -> s : 0) } fi;
  d_step { isFree ->
    if
    :: kept -> x = 0; do :: x < SLOTS -> slot[x] = 0; x++ :: else -> break od; x = 0; known[c] = 0
    :: else -> locate(c, mask); unlink(c, mask)
    fi;
    removing[c] = false; ask(END, 0); wanted[c] = (has(SECOND_ROW) -> s : 0) };
  d_step { isFree ->
    forget(c); returned = max(returned, v); ownReturned[c] = v;
    if :: !untold[c] -> told = max(told, v) :: else fi };
done:
  if :: d_step { true -> v = 0; s = 0; mask = 0; kept = false; isUpdate = false; failed[c] = false; reading[c] = 0; asked[c] = 0; mark[c] = 0 } fi;
  goto next;
end:
  if :: d_step { true -> ended[c] = true; v = 0; s = 0; n = 0 } fi
  } unless { dead[c] }
}

/* What befalls the caches. One that dies gives its locks back. */
inline die(c) {
  d_step { !dead[c] && deathsLeft > 0 ->
    deathsLeft--;
    if :: pending[c] != 0 && epoch > pending[c] -> excused = max(excused, pending[c]) :: else fi;
    dead[c] = true; reading[c] = 0; asked[c] = 0; mark[c] = 0; known[c] = 0; current[c] = false; doubted[c] = false; shared[c] = 0; forget(c); close(c); opening[c] = 0; x = 1;
    do :: x <= FILES -> holders[x] = holders[x] & (255 - bit(c)); x++ :: else -> break od;
    x = 0; owner = (owner == c + 1 -> 0 : owner);
    if :: replacing == c + 1 -> replacing = 0; deleting = 0 :: else fi;
    at[c] = IDLE; untold[c] = false; removing[c] = false;
    came[c] = false; owns[c] = false; alone[c] = false; request[c] = 0; wanted[c] = 0; pending[c] = 0 }
}
proctype World() {
  byte deathsLeft = c_expr { given.deaths }, deletionsLeft = c_expr { given.deletions }, cutsLeft = c_expr { given.cuts }, unlocksLeft = c_expr { given.unlocks }, fullsLeft = c_expr { given.fulls }, x;
  do
  :: die(0)
  :: die(1)
  :: d_step { deletionsLeft > 0 && path != 0 -> deletionsLeft--; path = 0 }
  :: d_step { cutsLeft > 0 && path != 0 && length[path] > 0 ->
        cutsLeft--; x = path; do :: length[x] > 0 -> length[x]--; row[(x - 1) * ROWS + length[x]] = 0 :: else -> break od; x = 0 }
  :: d_step { unlocksLeft > 0 && owner != 0 -> unlocksLeft--; owner = 0; wasOwned = false; if :: asked[0] + asked[1] > 0 -> excused = epoch :: else fi }
  :: d_step { fullsLeft > 0 && !isFull -> fullsLeft--; isFull = true }
  :: d_step { isFull -> isFull = false }
  :: !isFull -> break
  od
}

#define isQuiet(c) \
  (dead[c] || ended[c] && at[c] == IDLE && request[c] == 0 && !hasNews(c) && !mayElect(c) && !mayEnd(c) && !mayList(c) && !(hasLostLock(c) && has(LOCK_IS_GONE)))
#if CACHES > 2
#define isLastQuiet isQuiet(2)
#else
#define isLastQuiet true
#endif
#define isBad(v) (v != 0 && v < returned && v > excused)
init {
  byte c, x, mask;
  d_step {
    without = c_expr { given.leftOut };
    if
    :: c_expr { given.start > 0 } ->
       slot[0] = 1; memory[0] = c_expr { given.start < 3 }; came[0] = true; owns[0] = true; owner = 1; wasOwned = true; current[0] = true; known[0] = 1;
       alone[0] = c_expr { given.start == 1 }
    :: else
    fi;
    if
    :: c_expr { given.start >= 2 } ->
       path = 1; file[0] = 1; append(0, 1, NOTICED); position[0] = 1; c = 1;
       do
       :: c < CACHES -> memory[c] = memory[0]; came[c] = true; file[c] = 1; position[c] = 1; holders[1] = (has(HOLDING) -> holders[1] | bit(c) : 0); c++
       :: else -> break
       od;
       c = 0
    :: else
    fi };
  atomic {
    run Membership(0); run Cache(0, c_expr { given.first });
    run Membership(1); run Cache(1, c_expr { given.second });
#if CACHES > 2
    run Membership(2); run Cache(2, c_expr { given.third });
#endif
    if :: c_expr { given.deaths + given.deletions + given.cuts + given.unlocks + given.fulls > 0 } -> run World() :: else fi };
  /* Each cache looks, and makes a pass, as it does within a second. */
  if :: d_step { !isFull && isQuiet(0) && isQuiet(1) && isLastQuiet ->
    over = true;
    /* P1, P4, P5, P9: nothing that was removed is in memory, or on disk. */
    c = 0; do :: c < CACHES -> assert(!isBad(memory[c])); c++ :: else -> break od;
    c = 0; do :: c < SLOTS -> assert(!whole(c) || !isBad(slot[c])); c++ :: else -> break od;
    /* P6: the index of the owner knows each record. */
    c = 0;
    do
    :: c < CACHES -> if :: owns[c] -> examine(c, mask); assert(shared[c] == 0 || c_expr { given.deaths + given.fulls > 0 }); assert(shared[c] > 0 || (mask & (255 - known[c])) == 0) :: else fi; c++
    :: else -> break
    od } fi
}
