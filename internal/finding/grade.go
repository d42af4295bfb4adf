package finding

// Grades say, by code, how severe users want findings to be.
type Grades map[string]Grade

// Grade is what findings of one code count as.
type Grade struct {
	Usual  Severity // what most of them are
	Wanted Severity
}

// Apply gives findings the severities that are wanted. One that is only worth knowing, although those of its code usually
// are more, stays so: something else is to blame for it, or nobody is harmed.
func (g Grades) Apply(findings []Finding) {
	for i := range findings {
		f := &findings[i]
		grade, ok := g[f.Code]
		if !ok || f.Severity == Info && grade.Usual != Info {
			continue
		}
		f.Severity = grade.Wanted
	}
}
