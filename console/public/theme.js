// Storage throws if the browser forbids it; then the system theme applies.
try {
  const theme = localStorage.getItem("tollgate.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {}
