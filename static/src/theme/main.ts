/** Applies the remembered theme. Loaded before the styles paint, so that nothing flashes. */
import { applyTheme, rememberedTheme } from "./theme";

applyTheme(rememberedTheme());
