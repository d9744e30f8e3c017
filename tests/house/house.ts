// `bun run house`: prints the measures of the program's structure, and exits with 1 if one is over its budget.
import { isOver, readBudgets } from "./budgets.ts";
import { foldersOf, longestFiles, longestFunctions, measureHouse, readHouse, roomsOf } from "./measures.ts";

const shown = 5;

const print = (...lines: string[]): void => void process.stdout.write(lines.map((line) => `${line}\n`).join(""));

const house = await readHouse();
print("rooms  arrows  folder");
for (const folder of [undefined, ...foldersOf(house)]) {
  const { rooms, arrows, up } = roomsOf(house, folder);
  print(`${String(rooms).padStart(5)}  ${String(arrows).padStart(6)}  ${folder ?? "the whole"}`);
  for (const arrow of up) print(`               up: ${arrow}`);
}
print("", "lines  longest functions");
for (const { file, line, name, lines } of longestFunctions(house).slice(0, shown)) {
  print(`${String(lines).padStart(5)}  ${file}:${line} ${name}`);
}
print("", "lines  longest files");
for (const [file, lines] of longestFiles(house).slice(0, shown)) print(`${String(lines).padStart(5)}  ${file}`);

const measured = await measureHouse(house, await readBudgets());
print("", "value  budget  measure");
for (const one of measured) {
  const { name, value, max, names = [] } = one;
  const verdict = isOver(one) ? "  OVER by more than a tenth" : "";
  print(`${String(value).padStart(5)}  ${String(max).padStart(6)}  ${name}${verdict}`);
  for (const file of names) print(`               ${file}`);
}
process.exitCode = measured.some(isOver) ? 1 : 0;
