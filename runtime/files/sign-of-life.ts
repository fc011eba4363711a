/**
 * What tells others that the holder of a lock lives where its process id tells them nothing: containers
 * count processes of their own, and of one holder's id another sees a stranger or nobody. A socket in a
 * folder that they share is the kernel's word: who listens on it lives. Linux only, which has them. Of a
 * holder on another machine, with which a network folder is shared, only files are seen: one that beats.
 */
import { readlinkSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { systemClock } from "../process/clock.js";
import { sleep } from "../process/task.js";

/** How often the time of a file that beats moves. */
const BEAT_MS = 1_000;

/** Looks before its holder counts as dead, in six seconds at least; a stop of the kit has 10 s. */
const LOOKS = 24;

const LOOK_MS = 250;

/** Beats in a row that find no file, or nothing to read in it: one does while a tool writes it anew. */
const MAX_DOUBTS = 2;

/** Names the container whose process ids this process counts in; undefined where there is no telling. */
export function processSpace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return undefined; // Not Linux, or /proc is not there.
  }
}

/** A sign that is shown. */
export interface SignOfLife {
  /** Takes it away; harmless when called again. */
  end(): Promise<void>;
}

/**
 * Shows a sign of life until this process ends.
 * @returns undefined where the system or the file system has no such thing
 */
export async function showLife(file: string): Promise<SignOfLife | undefined> {
  if (processSpace() === undefined) return undefined;
  let folder: FileHandle | undefined;
  const server = createServer((socket) => socket.destroy());
  try {
    folder = await open(dirname(file), "r");
    await listen(server, shortPath(folder, file));
  } catch {
    await folder?.close();
    return undefined;
  }
  const held = folder;
  let ending: Promise<void> | undefined;
  return {
    end() {
      ending ??= takeAway(server, held, file);
      return ending;
    },
  };
}

/** Whether somebody shows a sign of life there; in doubt somebody does. */
export async function isLifeShown(file: string): Promise<boolean> {
  let folder: FileHandle | undefined;
  try {
    folder = await open(dirname(file), "r");
    (await connected(shortPath(folder, file))).destroy();
    return true;
  } catch (error) {
    return !["ENOENT", "ECONNREFUSED"].includes(errorCode(error));
  } finally {
    await folder?.close();
  }
}

/** Whose file it is that beats. */
export interface BeatOwner {
  /** Whose a content of the file is. */
  readonly whose: (content: string) => "own" | "other" | "unreadable";
  /**
   * Called once, at a beat that finds the file another's, or at a second one in a row that cannot read it or
   * finds none; there is no further beat then.
   */
  readonly onLost: () => void;
}

/**
 * Moves the time of a file until it is ended, the file is another's, or the process ends. Who has stood still
 * for long learns here that others took it for dead.
 */
export function startBeat(file: string, owner?: BeatOwner): { end(): void } {
  let isEnded = false;
  let isBusy = false;
  let doubts = 0;
  const end = (): void => {
    isEnded = true;
    clearInterval(timer);
  };
  const beat = async (): Promise<void> => {
    isBusy = true;
    // One that is missed is told by the next one.
    const state = await beatOnce(file, owner?.whose).catch(() => "missed" as const);
    isBusy = false;
    if (state === "own") doubts = 0;
    if (state === "unreadable") doubts += 1;
    const isLost = state === "other" || doubts >= MAX_DOUBTS;
    if (!isLost || isEnded) return;
    end();
    owner?.onLost();
  };
  // A folder that does not answer is asked once, not once a second.
  const timer = setInterval(() => void (isBusy || beat()), BEAT_MS).unref();
  return { end };
}

/** Of the open file, so that the time of what has taken its place is not moved. @returns whose it is */
async function beatOnce(
  file: string,
  whose: BeatOwner["whose"] = () => "own",
): Promise<ReturnType<BeatOwner["whose"]>> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return "unreadable";
    throw error;
  }
  try {
    const found = whose(await handle.readFile("utf8"));
    if (found !== "own") return found;
    const seconds = systemClock.nowMs() / 1_000;
    await handle.utimes(seconds, seconds);
    return found;
  } finally {
    await handle.close();
  }
}

/**
 * Whether the time of a file moves; in doubt it does. False for one that goes away. Looks are counted, not
 * the time: a machine that stands still for seconds keeps from looking, and from beating, too.
 */
export async function isBeating(file: string): Promise<boolean> {
  const { signal } = new AbortController();
  try {
    const first = await timeOf(file);
    for (let look = 0; look < LOOKS; look += 1) {
      await sleep(LOOK_MS, { signal });
      if ((await timeOf(file)) !== first) return true;
    }
    return false;
  } catch (error) {
    return errorCode(error) !== "ENOENT";
  }
}

/** Of an open file: what a network folder remembers of a closed one may be old. */
async function timeOf(file: string): Promise<bigint> {
  const handle = await open(file, "r");
  try {
    return (await handle.stat({ bigint: true })).mtimeNs;
  } finally {
    await handle.close();
  }
}

/** Through the open folder: the kernel takes paths of sockets up to 107 bytes only, and cuts none off. */
function shortPath(folder: FileHandle, file: string): string {
  return `/proc/self/fd/${folder.fd}/${basename(file)}`;
}

function listen(server: Server, path: string): Promise<void> {
  // It lives as long as its process has other things to do.
  server.unref();
  return new Promise((resolve, reject) => {
    // Not once: it lives, too, where it cannot take a connection (no file left), which whoever looks sees.
    server.on("error", reject);
    server.listen(path, () => resolve());
  });
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => resolve(socket));
  });
}

async function takeAway(server: Server, folder: FileHandle, file: string): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await folder.close();
  await rm(file, { force: true });
}
