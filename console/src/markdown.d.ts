/** The build replaces the handbook's contents by its chapters. */
declare module "*/README.md" {
  const chapters: readonly import("./handbook/chapter.ts").Chapter[];
  export default chapters;
}

declare module "*.md?raw" {
  const text: string;
  export default text;
}
