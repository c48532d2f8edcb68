// SPDX-License-Identifier: MIT
// core/mail/mailbox.cpp for Spin: how a thread sleeps, how others post to it, and how it ends. What
// is one step here is one atomic access there, all of them sequentially consistent.
//
// Mistakes that must be found: -DNO_SECOND_LOOK (the thread announces its sleep, but does not look
// into the inbox again), -DLATE_FLAG (a sender reads the sleep flag before it sets its own), and
// -DLATE_WAKE (a sender writes to the descriptor when it holds the lock no more).
#define SENDERS 3

mtype = { awake, looking, asleep };
mtype resting = awake;
bool filled, closed, locked, readable;
byte posted, taken, refused;
bool has_descriptor = true;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline wake() {
  assert(has_descriptor);
  readable = true
}

inline end_sleep() {
  if
  :: resting == awake -> state = awake
  :: else -> atomic { state = resting; resting = awake }
  fi;
#ifndef LATE_WAKE
  if
  :: state == asleep -> wake()
  :: else
  fi
#endif
}

// to_idle: as push_to_idle(), which ends a look before the post can be seen.
proctype sender(bool to_idle) {
  mtype state = awake;
  lock();
  if
  :: closed -> refused++
  :: else ->
    if
    :: to_idle -> atomic { if :: resting == looking -> resting = awake :: else fi }
    :: else
    fi;
#ifdef LATE_FLAG
    end_sleep();
    posted++; filled = true
#else
    posted++; filled = true;
    end_sleep()
#endif
  fi;
  unlock();
#ifdef LATE_WAKE
  if
  :: state == asleep -> wake()
  :: else
  fi
#endif
}

inline take() {
  lock();
  filled = false;
  taken = taken + posted;
  posted = 0;
  unlock()
}

active proctype owner() {
  do
  :: filled -> take()
  :: !filled ->
    if
    :: true ->  // wait_awake()
      resting = looking;
      if
      :: filled
      :: true  // for long enough
      fi;
      resting = awake
    :: true ->  // poll(true)
      resting = asleep;
#ifndef NO_SECOND_LOOK
      if
      :: filled -> resting = awake
      :: else ->
#endif
        readable -> readable = false;
        resting = awake
#ifndef NO_SECOND_LOOK
      fi
#endif
    :: true ->  // the thread ends
      lock();
      if
      :: posted > 0 -> unlock()
      :: else -> closed = true; unlock(); break
      fi
    fi
  od;
  has_descriptor = false
}

// Nothing can go on any more: whatever was posted has been taken, and the rest was refused.
active proctype judge() {
  byte i;
  for (i : 1 .. SENDERS) { run sender(i % 2 == 0) }
  timeout ->
  assert(posted == 0 && taken + refused == SENDERS)
}
