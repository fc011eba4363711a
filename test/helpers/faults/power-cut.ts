/**
 * The worst disk that a power cut may leave: of every file what was last forced, of every folder
 * the names that it had when it was last forced, of every level store the batches up to the last
 * one that was forced. Stricter than most file systems are. For tests that run in the environment
 * `forced-files-environment.mjs`, which tells of what Node forces.
 */
import fs from "node:fs";
import path from "node:path";
import { Level } from "level";

/** What stands for a file or folder whatever its name: inode and time of birth. */
type Identity = string;

/** One operation of a batch; without a value it deletes. */
interface Operation {
  readonly key: Buffer;
  readonly value: Buffer | undefined;
}

/** Everything written to a level store since it was made. */
interface StoreHistory {
  readonly operations: Operation[];
  /** How many of them are on disk. */
  forcedCount: number;
}

/** The one that watches at present. */
let watching: PowerCut | undefined;

/** Begins to see what is forced in this process; returns what undoes it. */
export function installPowerCut(): () => void {
  Reflect.set(globalThis, "onForced", forceDescriptor);
  const restoreLevel = watchLevel();
  return () => {
    Reflect.deleteProperty(globalThis, "onForced");
    restoreLevel();
  };
}

/** Watches what is forced to disk below a folder. */
export class PowerCut {
  private readonly contents = new Map<Identity, Buffer>();
  private readonly names = new Map<Identity, Map<string, Identity>>();
  private readonly folders = new Set<Identity>();
  private readonly stores = new Map<Identity, StoreHistory>();

  private constructor(private readonly root: string) {}

  /**
   * Begins to watch; what is there already is on disk. A level store may be in it only where
   * `before` has seen it made.
   */
  static watch(root: string, before?: PowerCut): PowerCut {
    const cut = new PowerCut(fs.realpathSync(root));
    cut.takeAll(cut.root);
    for (const [folder, store] of before?.stores ?? []) cut.stores.set(folder, store);
    watching = cut;
    return cut;
  }

  /** Ends watching. */
  end(): void {
    if (watching === this) watching = undefined;
  }

  /**
   * Writes the disk as it would be found now into a folder that is not there yet. What happens
   * afterwards is not watched any more.
   */
  async leave(target: string): Promise<void> {
    this.end();
    await this.leaveFolder(identityOf(this.root), target);
  }

  private async leaveFolder(folder: Identity, target: string): Promise<void> {
    fs.mkdirSync(target);
    const store = this.stores.get(folder);
    if (store !== undefined) return leaveStore(store, target);
    for (const [name, identity] of this.names.get(folder) ?? []) {
      const place = path.join(target, name);
      if (this.folders.has(identity)) await this.leaveFolder(identity, place);
      else fs.writeFileSync(place, this.contents.get(identity) ?? Buffer.alloc(0));
    }
  }

  private takeAll(folder: string): void {
    for (const name of fs.readdirSync(folder)) {
      const place = path.join(folder, name);
      if (fs.statSync(place).isDirectory()) this.takeAll(place);
      else this.force(place);
    }
    this.force(folder);
  }

  /** Takes a file's content or a folder's names as they are now. */
  force(place: string): void {
    if (place !== this.root && !place.startsWith(`${this.root}${path.sep}`)) return;
    const identity = identityOf(place);
    if (!fs.statSync(place).isDirectory()) {
      this.contents.set(identity, fs.readFileSync(place));
      return;
    }
    const names = new Map<string, Identity>();
    for (const name of fs.readdirSync(place)) {
      const inner = path.join(place, name);
      names.set(name, identityOf(inner));
      if (fs.statSync(inner).isDirectory()) this.folders.add(identityOf(inner));
    }
    this.folders.add(identity);
    this.names.set(identity, names);
  }

  /** The history of a level store, by its folder. */
  historyOf(folder: string): StoreHistory {
    const identity = identityOf(folder);
    const history = this.stores.get(identity) ?? { operations: [], forcedCount: 0 };
    this.stores.set(identity, history);
    return history;
  }
}

function forceDescriptor(fd: number): void {
  watching?.force(fs.readlinkSync(`/proc/self/fd/${fd}`));
}

function watchLevel(): () => void {
  const prototype: object = Level.prototype;
  if (!isLevelParts(prototype)) throw new TypeError("level is not what it was");
  const { open, batch } = prototype;
  prototype.open = async function opened(...parameters) {
    await open.apply(this, parameters);
    const history = watching?.historyOf(this.location);
    // Opening puts everything that lies in the log into files that it forces.
    if (history !== undefined) history.forcedCount = history.operations.length;
  };
  prototype.batch = function batched(...parameters) {
    const made = batch.apply(this, parameters);
    return watching === undefined ? made : recorded(made, watching.historyOf(this.location));
  };
  return () => {
    Object.assign(prototype, { open, batch });
  };
}

/** What of level is watched; all of our writes are chained batches. */
interface LevelParts {
  readonly location: string;
  open: (this: LevelParts, ...parameters: unknown[]) => Promise<void>;
  batch: (this: LevelParts, ...parameters: unknown[]) => BatchParts;
}

interface BatchParts {
  put: (this: BatchParts, key: Buffer, value: Buffer) => BatchParts;
  del: (this: BatchParts, key: Buffer) => BatchParts;
  write: (this: BatchParts, options?: { readonly sync?: boolean }) => Promise<void>;
}

function isLevelParts(value: object): value is LevelParts {
  return "open" in value && "batch" in value;
}

function recorded(batch: BatchParts, history: StoreHistory): BatchParts {
  const operations: Operation[] = [];
  const { put, del, write } = batch;
  batch.put = function putOne(key, value) {
    operations.push({ key: Buffer.from(key), value: Buffer.from(value) });
    return put.call(this, key, value);
  };
  batch.del = function delOne(key) {
    operations.push({ key: Buffer.from(key), value: undefined });
    return del.call(this, key);
  };
  batch.write = async function writeAll(options) {
    await write.call(this, options);
    history.operations.push(...operations);
    if (options?.sync === true) history.forcedCount = history.operations.length;
  };
  return batch;
}

async function leaveStore({ operations, forcedCount }: StoreHistory, target: string) {
  const level = new Level<Buffer, Buffer>(target, {
    keyEncoding: "buffer",
    valueEncoding: "buffer",
  });
  await level.open();
  const batch = level.batch();
  for (const { key, value } of operations.slice(0, forcedCount)) {
    if (value === undefined) batch.del(key);
    else batch.put(key, value);
  }
  await batch.write();
  await level.close();
}

function identityOf(place: string): Identity {
  const { ino, birthtimeNs } = fs.statSync(place, { bigint: true });
  return `${ino} ${birthtimeNs}`;
}
