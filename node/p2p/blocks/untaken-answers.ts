/**
 * What peers were given and have not taken. A block may have twenty megabytes, and asking for it costs a
 * few bytes: whoever asks on every stream and reads nothing would fill this node's memory.
 */
import type { PeerLink } from "../peers/peer-link.js";

/** Bytes that one peer may leave untaken; with so many it is given nothing more before it reads. */
const MAX_UNTAKEN_BYTES = 4 * 1024 * 1024;

interface PeerAnswers {
  untakenBytes: number;
  /** One piece is made at a time: its size is not known before. */
  isMaking: boolean;
  /** Single blocks that wait: no piece of a range is made before. */
  singleCount: number;
  readonly waiting: Set<() => void>;
}

/** The answers of one node. */
export class UntakenAnswers {
  private readonly peers = new WeakMap<PeerLink, PeerAnswers>();

  /**
   * Waits until the peer may be given a piece; `made` has to follow. Rejects with the signal's reason.
   * @param isSingle whether it asks for one block: that may prove how far this node is, and waits for
   * nothing of ranges but what is under way
   */
  async begin(link: PeerLink, signal: AbortSignal, isSingle: boolean): Promise<void> {
    const answers = this.of(link);
    if (isSingle) answers.singleCount++;
    const isBehind = () => !isSingle && answers.singleCount > 0;
    try {
      while (answers.isMaking || answers.untakenBytes >= MAX_UNTAKEN_BYTES || isBehind()) {
        await change(answers, signal);
      }
      signal.throwIfAborted();
      answers.isMaking = true;
    } finally {
      if (isSingle) answers.singleCount--;
      wake(answers);
    }
  }

  /** A piece of so many bytes is on its way, and `taken` has to follow; 0 where there was nothing to give. */
  made(link: PeerLink, sizeBytes: number): void {
    this.move(link, sizeBytes, false);
  }

  /** The peer has it, or its stream is over. */
  taken(link: PeerLink, sizeBytes: number): void {
    this.move(link, -sizeBytes, this.of(link).isMaking);
  }

  private move(link: PeerLink, sizeBytes: number, isMaking: boolean): void {
    const answers = this.of(link);
    answers.untakenBytes += sizeBytes;
    answers.isMaking = isMaking;
    wake(answers);
  }

  private of(link: PeerLink): PeerAnswers {
    const known = this.peers.get(link);
    if (known !== undefined) return known;
    const waiting = new Set<() => void>();
    const answers = { untakenBytes: 0, isMaking: false, singleCount: 0, waiting };
    this.peers.set(link, answers);
    return answers;
  }
}

function wake({ waiting }: PeerAnswers): void {
  for (const look of waiting) look();
}

function change({ waiting }: PeerAnswers, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const end = () => {
      waiting.delete(look);
      signal.removeEventListener("abort", onAbort);
    };
    const look = () => {
      end();
      resolve();
    };
    const onAbort = () => {
      end();
      reject(signal.reason);
    };
    waiting.add(look);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
