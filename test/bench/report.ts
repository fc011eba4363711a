/** What a benchmark prints and writes. */
import { cpus, loadavg, totalmem } from "node:os";
import { secp256k1 } from "../../chain/crypto.js";

/** One line of the table. */
export interface BenchRow {
  readonly title: string;
  readonly unit: string;
  readonly ours: number;
  /** Undefined where there is no peer on this machine. */
  readonly peer?: number;
  readonly peerName?: string;
  /** What the project wants of ours / peer, or of ours itself. */
  readonly aim?: { readonly ratio: number } | { readonly value: number };
  /** Figures beside it: latencies, CPU time, limits. */
  readonly details: readonly string[];
}

/** The machine that ran it. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGib: number;
  readonly node: string;
  readonly platform: string;
  readonly secp256k1: string;
  /** Over the last minute, when the benchmark started. */
  readonly loadAverage: number;
}

/** Looks at the machine. */
export function describeMachine(): Machine {
  const processors = cpus();
  return {
    cores: processors.length,
    cpu: processors[0]?.model ?? "unknown",
    memoryGib: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    secp256k1: secp256k1.backend,
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** Ours divided by the peer's. */
export function ratioOf({ ours, peer }: BenchRow): number | undefined {
  return peer === undefined || peer === 0 ? undefined : ours / peer;
}

/** Whether the aim is reached; undefined where there is none, or no peer to compare with. */
export function isMet(row: BenchRow): boolean | undefined {
  if (row.aim === undefined) return undefined;
  if ("value" in row.aim) return row.ours >= row.aim.value;
  const ratio = ratioOf(row);
  return ratio === undefined ? undefined : ratio >= row.aim.ratio;
}

/** The table as lines of text. */
export function renderTable(rows: readonly BenchRow[]): string[] {
  const header = ["", "ours", "peer", "ratio", "aim", ""];
  const cells = rows.map((row) => {
    const ratio = ratioOf(row);
    const met = isMet(row);
    return [
      `${row.title} (${row.unit})`,
      formatFigure(row.ours),
      row.peer === undefined ? "" : `${formatFigure(row.peer)} ${row.peerName ?? ""}`,
      ratio === undefined ? "" : `${formatFigure(ratio)}x`,
      formatAim(row.aim),
      met === undefined ? "" : met ? "met" : "NOT met",
    ];
  });
  const widths = header.map((title, column) =>
    Math.max(title.length, ...cells.map((line) => line[column]?.length ?? 0)),
  );
  const layOut = (line: readonly string[]) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  const lines = [layOut(header)];
  for (const [index, row] of rows.entries()) {
    lines.push(layOut(cells[index] ?? []));
    for (const detail of row.details) lines.push(`    ${detail}`);
  }
  return lines;
}

/** A figure with three significant digits, or whole where it is larger. */
export function formatFigure(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

function formatAim(aim: BenchRow["aim"]): string {
  if (aim === undefined) return "";
  return "ratio" in aim ? `${aim.ratio}x` : formatFigure(aim.value);
}
